"""Words that tell questions apart, in English and Chinese. Data only."""

from __future__ import annotations

from typing import Final

# Two poles a line: a word of one in this text and of the other in that forbids.
_POLES: Final = """
open opens opened opening enable enables enabled enabling activate activated activation unlock unlocked resume resumed restore show visible subscribe subscribed turn_on switch_on 开通 打开 开启 启用 激活 解锁 恢复 显示 订阅 开 | close closes closed closing disable disables disabled disabling deactivate deactivated deactivation lock locked suspend pause hide hidden unsubscribe unsubscribed turn_off switch_off cancel cancels cancelled canceled cancelling canceling terminate 关闭 关掉 取消 停用 禁用 注销 锁定 隐藏 退订 暂停 终止 关
start starts started starting begin begins began beginning 开始 启动 | stop stops stopped stopping end ends ended ending finish finished quit 停止 结束 停
on 上 | off 下
in inside into indoor incoming inbound 里 内 入 进 进入 | out outside outdoor outgoing outbound 外 出 出去
up upper upload uploads uploading upgrade upstairs upstream 上传 升级 上升 上涨 涨 升 | down lower download downloads downloading downgrade downstairs downstream 下载 降级 下降 下跌 跌 降
increase increases increased increasing raise raised gain gains gained grow add adds added adding more extend 增加 提高 增 加 多 增大 延长 增肥 | decrease decreases decreased decreasing reduce reduced lower lose loses lost losing shrink remove removes removed removing delete deleted subtract less fewer shorten 减少 降低 减 减小 删除 移除 少 缩短 减肥
buy buys bought buying purchase purchased 买 购买 买入 买进 | sell sells sold selling sale 卖 出售 卖出 卖掉
borrow borrowed 借入 借 | lend lent lends return repay repaid 借出 还 归还 还款
deposit deposits deposited 存 存款 存入 充值 | withdraw withdraws withdrawal withdrew 取 取款 取出 提现
send sends sent sending 发送 发出 寄 | receive receives received receiving get 收到 接收 收 收取
import imports imported 导入 进口 | export exports exported 导出 出口
login log_in sign_in signin check_in connect connected attach mount install installs installed installing join joined link 登录 登陆 登入 安装 加入 绑定 连接 | logout log_out sign_out signout check_out disconnect disconnected detach unmount uninstall uninstalls uninstalled leave left unlink 登出 退出 卸载 离开 解绑 断开
accept accepted approve approved agree allow allows allowed permit grant grants win wins won winning pass passed success succeed succeeded 接受 同意 批准 允许 赢 通过 成功 支持 | reject rejected refuse refused deny denied disagree forbid block blocks blocked ban banned revoke lose fail failed failure 拒绝 不同意 禁止 屏蔽 输 失败 反对
encrypt encode compress zip 加密 编码 压缩 | decrypt decode decompress unzip extract 解密 解码 解压
before earlier 之前 以前 前 | after later 之后 以后 后
first earliest 最早 第一 首 | last latest 最晚 最后 末 尾
max maximum most highest largest biggest longest tallest upper 最大 最高 最多 最长 最贵 上限 | min minimum least lowest smallest shortest 最小 最低 最少 最短 最便宜 下限
best better good 最好 更好 好 | worst worse bad 最差 更差 坏 差 不好
high higher tall 高 更高 | low short 低 更低 矮
big bigger large larger 大 | small smaller little tiny 小
long longer 长 | short shorter 短
fast faster quick quickly quicker 快 | slow slower slowly 慢
hot warm heat heating 热 加热 暖 | cold cool cooling 冷 制冷 凉
old older elder 旧 老 | new newer young younger 新 年轻
cheap cheaper cheapest 便宜 | expensive dear pricey costly 贵
rich wealthy 富 富有 | poor 穷 贫穷
hard difficult 难 困难 | easy simple soft 容易 简单 易
safe secure healthy legal possible true real positive advantage advantages pros benefit benefits strength strengths 安全 健康 合法 真 正 优点 好处 优势 利 有益 | dangerous unsafe insecure unhealthy risk risks illegal impossible false fake negative disadvantage disadvantages cons drawback drawbacks weakness weaknesses harm harms harmful 危险 不安全 有害 违法 非法 假 负 缺点 坏处 劣势 弊 弱点
love loves like likes 爱 喜欢 | hate hates dislike dislikes 恨 讨厌
man men male boy boys father dad husband son brother uncle king actor he his him 男 男人 男生 男孩 男性 父亲 爸爸 丈夫 老公 儿子 哥哥 弟弟 他 | woman women female girl girls mother mom mum wife daughter sister aunt queen actress she her 女 女人 女生 女孩 女性 母亲 妈妈 妻子 老婆 女儿 姐姐 妹妹 她
left 左 左边 左侧 | right 右 右边 右侧
north northern 北 | south southern 南
east eastern 东 | west western 西
morning am sunrise 早上 上午 早 日出 | evening night pm sunset 晚上 下午 晚 日落
day daytime 白天 | night nighttime 夜里 夜晚
black dark 黑 暗 | white bright light 白 亮
public 公开 公共 | private 私有 私人 私密
with 有 带 含 | without 没有 无 不带 不含
always 总是 一直 | never 从不 从未
all everyone everything 全部 所有 | none nobody nothing some 部分
full 满 | empty 空
alive live born birth 活 出生 生 | dead die died death 死 死亡 去世
above over 以上 超过 高于 大于 | below under beneath 以下 低于 小于 不到
parent 父 | child 子
teacher teach 老师 教 | student learn 学生 学
doctor 医生 | patient 病人 患者
employer boss 雇主 老板 | employee staff 员工
landlord 房东 | tenant renter 租客
seller merchant 卖家 商家 | buyer customer 买家 顾客
debit expense spend spending cost 支出 花费 | credit income earn earning revenue 收入 赚
input 输入 | output 输出
front 前面 正面 | back rear behind 后面 背面
internal domestic 内部 国内 | external foreign international 外部 国外 国际
single unmarried 单身 未婚 | married couple 已婚
marry marriage wedding 结婚 | divorce divorced 离婚
hire hires hired 雇用 招聘 录用 入职 | fire fires fired dismiss 解雇 辞退 离职 辞职
push 推 | pull 拉
strong stronger 强 | weak weaker 弱
wet 湿 | dry 干
create creates created make build built 创建 新建 建立 | destroy delete deleted drop 删除 销毁 删
save 保存 | discard delete 丢弃 删除
even 偶数 | odd 奇数
include included including 包含 包括 | exclude excluded excluding 不包含 不包括 除外
attack 攻 进攻 | defend defense defence 守 防守
arrive arrival arrives 到达 抵达 | depart departure departs 出发 离开
ascending 升序 | descending 降序
horizontal 横 水平 | vertical 竖 垂直
absolute 绝对 | relative 相对
plus 加 | minus 减
multiply 乘 | divide 除
"""

# Members of a line exclude each other. A line with `!` names things that matter even where only
# one of the texts has them.
_KINDS: Final = """
! january jan 一月 1月 | february feb 二月 2月 | march | april apr 四月 4月 | may | june jun 六月 6月 | july jul 七月 7月 | august aug 八月 8月 | september sep sept 九月 9月 | october oct 十月 10月 | november nov 十一月 11月 | december dec 十二月 12月
monday 周一 星期一 | tuesday 周二 星期二 | wednesday 周三 星期三 | thursday 周四 星期四 | friday 周五 星期五 | saturday 周六 星期六 | sunday 周日 星期日 星期天 | weekend 周末 | weekday 工作日
today tonight 今天 今日 今晚 | tomorrow 明天 明日 明晚 | yesterday 昨天 昨日 昨晚 | 后天 | 前天
this_year 今年 本年 | next_year 明年 | last_year 去年 | 后年 | 前年
this_week 本周 这周 | next_week 下周 | last_week 上周
this_month 本月 这个月 | next_month 下个月 下月 | last_month 上个月 上月
spring 春 春天 春季 | summer 夏天 夏季 | autumn fall 秋 秋天 秋季 | winter 冬 冬天 冬季
daily per_day 每天 每日 | weekly per_week 每周 | monthly per_month 每月 | yearly annual annually per_year 每年 | hourly per_hour 每小时 | quarterly 每季度
breakfast 早餐 早饭 | lunch 午餐 午饭 | dinner supper 晚餐 晚饭
red 红色 红 | blue 蓝色 蓝 | green 绿色 绿 | yellow 黄色 黄 | orange 橙色 橙 | purple 紫色 紫 | pink 粉色 粉红 | brown 棕色 褐色 | grey gray 灰色 灰 | black 黑色 | white 白色 | gold golden 金色 | silver 银色
! english 英语 英文 | chinese mandarin 中文 汉语 | japanese 日语 日文 | korean 韩语 韩文 | french 法语 法文 | german 德语 德文 | spanish 西班牙语 | russian 俄语 俄文 | italian 意大利语 | portuguese 葡萄牙语 | arabic 阿拉伯语 | hindi 印地语 | cantonese 粤语 | latin 拉丁语
! usd dollar dollars 美元 美金 | eur euro euros 欧元 | gbp pound pounds sterling 英镑 | cny rmb yuan 人民币 | jpy yen 日元 | inr rupee rupees 卢比 | krw won 韩元 | hkd 港币 港元 | bitcoin btc 比特币 | ethereum eth 以太坊
! china 中国 | india indian 印度 | pakistan pakistani 巴基斯坦 | america american usa us u.s united_states 美国 | uk britain british england united_kingdom 英国 | france 法国 | germany 德国 | japan 日本 | korea korean 韩国 | north_korea 朝鲜 | russia russian 俄罗斯 俄国 | ukraine 乌克兰 | canada canadian 加拿大 | australia australian 澳大利亚 澳洲 | new_zealand 新西兰 | italy 意大利 | spain 西班牙 | portugal 葡萄牙 | brazil 巴西 | mexico mexican 墨西哥 | argentina 阿根廷 | egypt 埃及 | turkey turkish 土耳其 | iran iranian 伊朗 | iraq iraqi 伊拉克 | israel israeli 以色列 | palestine 巴勒斯坦 | singapore 新加坡 | malaysia 马来西亚 | thailand thai 泰国 | vietnam vietnamese 越南 | indonesia 印尼 印度尼西亚 | philippines 菲律宾 | bangladesh 孟加拉国 孟加拉 | sri_lanka 斯里兰卡 | nepal 尼泊尔 | switzerland swiss 瑞士 | sweden swedish 瑞典 | norway 挪威 | denmark 丹麦 | finland 芬兰 | poland 波兰 | netherlands holland dutch 荷兰 | belgium 比利时 | austria 奥地利 | greece greek 希腊 | ireland irish 爱尔兰 | scotland 苏格兰 | saudi 沙特 | uae dubai 阿联酋 迪拜 | south_africa 南非 | nigeria 尼日利亚 | kenya 肯尼亚 | europe european 欧洲 | asia asian 亚洲 | africa african 非洲
! beijing 北京 | shanghai 上海 | guangzhou 广州 | shenzhen 深圳 | hangzhou 杭州 | nanjing 南京 | chengdu 成都 | chongqing 重庆 | wuhan 武汉 | xian 西安 | tianjin 天津 | suzhou 苏州 | changsha 长沙 | zhengzhou 郑州 | qingdao 青岛 | dalian 大连 | xiamen 厦门 | ningbo 宁波 | wuxi 无锡 | foshan 佛山 | dongguan 东莞 | shenyang 沈阳 | harbin 哈尔滨 | jinan 济南 | hefei 合肥 | fuzhou 福州 | kunming 昆明 | nanchang 南昌 | guiyang 贵阳 | lanzhou 兰州 | taiyuan 太原 | shijiazhuang 石家庄 | sanya 三亚 | lhasa 拉萨 | hong_kong 香港 | macau 澳门 | taipei 台北 | taiwan 台湾 | london 伦敦 | paris 巴黎 | berlin 柏林 | tokyo 东京 | osaka 大阪 | kyoto 京都 | seoul 首尔 | moscow 莫斯科 | new_york 纽约 | washington 华盛顿 | chicago 芝加哥 | boston 波士顿 | seattle 西雅图 | san_francisco 旧金山 | los_angeles 洛杉矶 | toronto 多伦多 | vancouver 温哥华 | sydney 悉尼 | melbourne 墨尔本 | rome 罗马 | madrid 马德里 | barcelona 巴塞罗那 | delhi 德里 | mumbai 孟买 | bangalore 班加罗尔 | bangkok 曼谷
! guangdong 广东 | zhejiang 浙江 | jiangsu 江苏 | shandong 山东 | henan 河南 | hebei 河北 | hunan 湖南 | hubei 湖北 | sichuan 四川 | fujian 福建 | anhui 安徽 | jiangxi 江西 | guangxi 广西 | yunnan 云南 | guizhou 贵州 | shanxi 山西 | shaanxi 陕西 | gansu 甘肃 | qinghai 青海 | xinjiang 新疆 | tibet 西藏 | hainan 海南 | liaoning 辽宁 | jilin 吉林 | heilongjiang 黑龙江 | inner_mongolia 内蒙古 | ningxia 宁夏
! apple 苹果 | huawei 华为 | xiaomi 小米 | samsung 三星 | oppo | vivo | google 谷歌 | microsoft 微软 | amazon 亚马逊 | facebook meta 脸书 | alibaba 阿里巴巴 | tencent 腾讯 | baidu 百度 | jd 京东 | taobao 淘宝 | pinduoduo 拼多多 | meituan 美团 | douyin tiktok 抖音 | kuaishou 快手 | wechat 微信 | qq | alipay 支付宝 | weibo 微博 | didi 滴滴 | uber 优步 | airbnb | netflix | spotify | paypal | visa | mastercard | tesla 特斯拉 | toyota 丰田 | honda 本田 | bmw 宝马 | mercedes 奔驰 | audi 奥迪 | ford 福特 | volkswagen 大众 | nissan 日产 | hyundai 现代 | intel 英特尔 | amd | nvidia 英伟达 | lenovo 联想 | dell 戴尔 | hp 惠普 | asus 华硕 | sony 索尼 | nintendo 任天堂 | nike 耐克 | adidas 阿迪达斯 | starbucks 星巴克 | mcdonald mcdonalds 麦当劳 | kfc 肯德基
iphone | android 安卓 | ipad | macbook | windows | linux | macos | ios
! python | java | javascript | ruby | rust | golang | php | perl | kotlin | swift | scala | matlab
! mysql | postgresql postgres | sqlite | mongodb | redis | oracle
icbc 工商银行 工行 | ccb 建设银行 建行 | abc_bank 农业银行 农行 | boc 中国银行 | 招商银行 招行 | 交通银行 交行 | 邮政储蓄 邮储
credit_card 信用卡 | debit_card 借记卡 储蓄卡
phone mobile cellphone 手机 | laptop notebook 笔记本 | computer pc 电脑 | tablet 平板 | television tv 电视 | camera 相机
email mail 邮箱 邮件 | address 地址 | password 密码 | username 用户名 | phone_number 手机号 电话 | name 名字 姓名
refund refunds refunded 退款 | exchange 换货 | repair 维修 修理 | return_goods 退货
dog dogs puppy 狗 | cat cats kitten 猫 | horse 马 | bird 鸟 | fish 鱼 | rabbit 兔 | pig 猪 | cow 牛
train 火车 高铁 | plane flight airplane 飞机 航班 | bus 公交 巴士 | car 汽车 | ship boat 船 | subway metro 地铁 | bike bicycle 自行车
kg kilogram kilograms kilo kilos 公斤 千克 | g gram grams 克 | lb lbs 磅 | ounce ounces oz 盎司 | ton tons tonne 吨
km kilometer kilometers kilometre 公里 千米 | mile miles 英里 | meter meters metre metres 米 | cm centimeter centimeters 厘米 | mm millimeter 毫米 | inch inches 英寸 | foot feet ft 英尺 | yard yards 码
second seconds 秒 秒钟 | minute minutes 分钟 | hour hours 小时 | day days 天 | week weeks 周 星期 | month months 个月 | year years 年 | decade decades | century centuries 世纪
celsius 摄氏度 摄氏 | fahrenheit 华氏度 华氏 | kelvin 开尔文
liter liters litre litres 升 | ml milliliter 毫升 | gallon gallons 加仑
kb | mb | gb | tb
"""

NEGATIONS: Final = frozenset(
    "not no never none nothing nobody neither nor without cannot cant can't don't doesn't didn't "
    "won't wouldn't isn't aren't wasn't weren't shouldn't couldn't haven't hasn't hadn't ain't "
    "dont doesnt didnt wont isnt arent wasnt shouldnt couldnt unable except unless hardly".split()
)
NEGATIONS_ZH: Final = ("不", "没", "无", "非", "未", "勿", "别", "莫", "甭", "拒")
# Words in which a negating character says nothing of the kind.
NOT_NEGATIONS_ZH: Final = (
    "特别 别墅 别人 性别 级别 分别 区别 鉴别 识别 个别 类别 差别 告别 无锡 无线 非洲 非常 未来 莫斯科 不过 "
    "不仅 不但 不管 不论 无论 不错 不断 不锈钢 南无 沉没 没收 非典 对不起 差不多 了不起 拒绝"
).split()

STOP: Final = frozenset(
    "a an the is are was were be been being am do does did doing done have has had having can could "
    "will would shall should may might must i me my mine we us our you your yours it its this that "
    "these those there here of to in on at for from by with about as into through and or but if then "
    "so than too very just also please tell explain describe give how what which who whom whose when "
    "where why what's how's who's it's i'm i'd i'll i've you're that's there's let's get got go way "
    "ways any some someone one's else ever really actually kind sort thing things want wants need "
    "needs like use using used make makes know work works help okay hi hello hey ok best good".split()
)
STOP_ZH: Final = frozenset(
    "的了吗呢吧啊呀嘛么哪哦喔哈是在有和与及或就都也还要会能可以该请问我你您它们这那个些样种什怎何如"
    "为谁几多少一下到把被让对于从给得地着过来去啥咋想说看做用吃让叫帮点些没不办法时候"
)

# Kinds of question that are not answered alike; `what`, `which` and `how` are too loose to tell.
QUESTION_KINDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("who", ("who", "whom", "whose", "who's", "谁", "哪位")),
    ("when", ("when", "what_time", "what_date", "什么时候", "何时", "几点", "啥时候", "哪天", "哪年", "几号")),
    ("where", ("where", "which_city", "which_country", "哪里", "哪儿", "何处", "在哪", "什么地方")),
    ("why", ("why", "what_reason", "为什么", "为何", "怎么会", "干嘛", "为啥", "原因")),
    ("amount", ("how_much", "how_many", "what_price", "多少", "几个", "几块", "几次", "几天", "价格")),
    ("length", ("how_long", "how_far", "how_old", "多久", "多长", "多远", "多大", "几岁")),
)

# Words that give two things an order.
DIRECTION: Final = frozenset(
    "to from into than vs versus over against before after between by of for 从 到 比 给 把 被 向 往 转 "
    "至 换 成 让 由 于 打 胜 大 小 -> => > <".split()
)

ENGLISH_NUMBERS: Final = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
    "once": 1, "twice": 2, "thrice": 3, "half": 0.5, "quarter": 0.25, "dozen": 12, "double": 2,
    "triple": 3, "first": 1, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "tenth": 10,
}  # fmt: skip
SCALES: Final = {
    "hundred": 100, "thousand": 1_000, "k": 1_000, "million": 1_000_000, "m": 1_000_000,
    "billion": 1_000_000_000, "bn": 1_000_000_000,
}  # fmt: skip
# Chinese words with a numeral in them that count nothing.
NOT_NUMBERS_ZH: Final = (
    "一下 一起 一样 一直 一般 一定 一些 一点 一切 一旦 一边 一共 一会 一向 一致 统一 唯一 万一 千万 三星 "
    "第一时间 十分 百度 百分 万能 千里 三国 四川 八卦 七夕 五一 十一黄金 两岸 万达 百合 百科 九寨沟 三亚 六安 "
    "一代 之一 逐一 任一 一模一样 乱七八糟 半天 一半"
).split()


def _forms(cell: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in cell.split())


POLES: Final = tuple(
    tuple(_forms(side) for side in line.split("|")) for line in _POLES.strip().splitlines()
)
KINDS: Final = tuple(
    (line.startswith("!"), tuple(_forms(side) for side in line.lstrip("! ").split("|")))
    for line in _KINDS.strip().splitlines()
)
