// Package jaeger holds nothing: its go.mod pins the Jaeger that the tests run.
package jaeger
