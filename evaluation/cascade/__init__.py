"""The cascade, measured offline: is the small model's answer good enough to keep?"""
