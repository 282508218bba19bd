"""Word lists for the demo corpus, all written for this project; any likeness to a real name is accidental.

Open-class names (given names, place stems, brand stems) are two characters, one from a list of first characters and
one from a list of second characters. A fixed rule, ``split_pairs``, gives each pair to train or to dev, so that each
character occurs in train but no dev pair does. ``RESERVED`` pairs are in neither part: UNSEEN_SENTENCES uses them.
"""


def split_pairs(firsts, seconds, excluded=()):
    """All pairs of characters as ``(train, dev)`` lists: a fifth of the pairs of each character goes to dev."""
    train, dev = [], []
    for i, first in enumerate(firsts):
        for j, second in enumerate(seconds):
            pair = first + second
            if first != second and pair not in excluded:
                (dev if (i + j) % 5 == 0 else train).append(pair)
    return train, dev


RESERVED = ("雁潭", "碧洲", "鹤湾", "槐浦", "蓝拓", "卓翔", "雨桐", "子航")

SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙朱马胡郭何罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程苏魏吕丁任沈姚卢姜"
    "崔钟谭陆汪范廖贾韦夏邱方侯邹熊孟秦薛阎段雷黎史陶贺顾毛郝龚邵万钱严武戴莫孔向汤"
)
COMPOUND_SURNAMES = ("欧阳", "上官", "司徒", "诸葛", "慕容", "皇甫")
GIVEN_FIRSTS = "子雨思佳文志俊晓梦欣浩宇嘉明建丽雪若一诗静可立景书承语亦乐启少慧美淑国玉振"
GIVEN_SECONDS = "轩涵怡杰豪琪妍然航桐彤萱辉磊娜敏婷颖洁雯鹏斌凯峻霖昊楠芸蕾薇琳瑶毅钧哲睿翰驰茹菲"
GIVEN_SINGLES = "敏婷雯鹏斌凯霖昊芸蕾琳瑶哲睿静慧涵莹翰岚"
GIVEN_EXCLUDED = RESERVED + (  # with some surname these are widely known persons
    "亦菲", "建斌", "俊凯", "慧琳", "慧雯", "承鹏", "诗雯", "晓鹏", "文斌", "俊杰", "美琪", "慧敏", "静茹", "佳琪",
    "丽颖", "若彤",
)
GIVEN_TRAIN, GIVEN_DEV = split_pairs(GIVEN_FIRSTS, GIVEN_SECONDS, GIVEN_EXCLUDED)
GIVEN_DEV += GIVEN_SINGLES[::5]
GIVEN_TRAIN += [single for single in GIVEN_SINGLES if single not in GIVEN_SINGLES[::5]]

PLACE_FIRSTS = "云白青清长永临金石龙凤平新沙松柳梅桃枫竹怀兰碧秀霞鹿雁鹤槐棠宁安和玄"
PLACE_SECONDS = "岭川河江溪泉湖浦港源州阳原陵桥林峰湾坪岩关潭洲渡"
PLACE_EXCLUDED = RESERVED + ("长江", "平原", "石林", "金陵", "平阳", "清关", "白桥", "青原", "和州", "云林", "新原")
PLACE_TRAIN, PLACE_DEV = split_pairs(PLACE_FIRSTS, PLACE_SECONDS, PLACE_EXCLUDED)
WATER = "河江溪泉湖港湾潭洲渡"  # a stem that ends so does not take a lake or river suffix

BRAND_FIRSTS = "星睿恒瑞博鼎盛华宏飞腾智创优联汇信天海锐卓凯诚迅晶蓝"
BRAND_SECONDS = "途达泰远科通图芯维诺拓力翔朗航尚程宇能"
BRAND_EXCLUDED = RESERVED + (
    "智能", "联通", "华能", "创维", "海航", "华泰", "海通", "博通", "天通", "飞翔", "海图", "宏图", "宏远", "天宇",
    "智力", "蓝图", "恒力", "恒通", "信达", "飞航", "信科", "天航", "海能", "恒泰", "瑞科", "宏达", "腾达", "飞达",
    "优能", "创力", "联芯", "信维", "海程", "天尚", "华科", "华图", "智程",
)
BRAND_TRAIN, BRAND_DEV = split_pairs(BRAND_FIRSTS, BRAND_SECONDS, BRAND_EXCLUDED)

# Closed classes, shared by train and dev.
ROAD_SUFFIXES = ("路", "街", "大道", "巷")
SCENIC_SUFFIXES = ("山", "古镇", "峡谷", "草原", "寺")
WATER_SUFFIXES = ("湖", "水库", "河")
FACILITY_SUFFIXES = (
    "火车站", "机场", "公园", "体育馆", "体育中心", "客运站", "植物园", "会展中心", "湿地公园", "高铁站",
)

INDUSTRIES = (
    "科技", "信息技术", "生物医药", "新能源", "物流", "餐饮管理", "文化传媒", "建设工程", "贸易", "电子商务", "食品",
    "机械制造", "环保科技", "家居用品",
)
COMPANY_SUFFIXES = ("有限公司", "有限责任公司", "股份有限公司")
MAKER_SUFFIXES = ("科技", "电子", "数码", "电器", "集团")
FIRM_SUFFIXES = ("科技", "集团", "物流", "银行", "传媒", "药业", "地产", "证券", "航空", "食品")
ORDINALS = ("第一", "第二", "第三", "第四", "第五", "第六")
HOSPITAL_SUFFIXES = ("人民医院", "中心医院", "中医院", "妇幼保健院", "儿童医院", "肿瘤医院")
WARDS = ("急诊科", "儿科", "骨科", "心内科", "眼科")
UNIVERSITY_SUFFIXES = ("大学", "师范大学", "理工大学", "医科大学", "农业大学", "职业技术学院", "财经大学")
FACULTIES = ("附属医院", "医学院", "图书馆", "出版社", "计算机学院", "研究生院", "体育学院")
SCHOOL_SUFFIXES = ("实验小学", "实验中学", "中心小学", "外国语学校", "高级中学", "机关幼儿园")
BUREAUS = (
    "教育局", "公安局", "税务局", "气象局", "卫生健康委员会", "市场监督管理局", "人民政府", "交通运输局",
    "文化和旅游局",
)
COURTS = ("人民法院", "人民检察院")
CLUB_SUFFIXES = ("足球俱乐部", "篮球俱乐部", "排球俱乐部", "乒乓球俱乐部")
STUDIO_SUFFIXES = ("工作室", "口腔诊所", "慈善基金会", "书画院", "法律服务所", "舞蹈学校", "中医馆")
USER_GROUP_SUFFIXES = ("用户俱乐部", "项目组", "事业部", "研发中心", "玩家协会")
BRANCHES = ("研究院", "工会", "售后服务中心")

DEVICES = (
    "手机", "平板电脑", "笔记本电脑", "扫地机器人", "蓝牙耳机", "智能手表", "电饭煲", "空气净化器", "投影仪", "电动车",
)
GOODS = ("洗衣液", "保温杯", "洗面奶", "酸奶", "护手霜", "牙膏", "登山鞋", "咖啡豆", "婴儿湿巾", "羽绒服")
MEDICINES = ("止咳颗粒", "感冒灵胶囊", "维生素片", "降压片", "眼药水", "健胃丸", "退热贴")
SPECIALTIES = ("香米", "毛尖茶", "腊肉", "脐橙", "蜂蜜", "豆腐干", "黄酒", "挂面", "核桃", "辣酱")
APPS = ("输入法", "浏览器", "云笔记", "记账本", "音乐播放器", "翻译助手")
CODE_LETTERS = ("X", "A", "S", "T", "V", "K", "M", "GT", "RX", "Z")
CODE_ENDINGS = ("", "", "", "", " Pro", "Max", "Plus", "s")

TITLES = {
    "business_title": (
        "总经理", "副总经理", "董事长", "首席执行官", "财务总监", "销售经理", "项目经理", "产品经理", "技术总监",
        "运营主管", "人事专员", "软件工程师", "会计", "CEO", "CTO", "采购员", "客户经理", "设计师",
    ),
    "medical_title": ("主任医师", "副主任医师", "护士长", "护士", "院长", "内科医生", "外科医生", "药剂师", "麻醉师"),
    "school_title": ("校长", "副校长", "班主任", "教务主任", "年级组长"),
    "university_title": ("教授", "副教授", "讲师", "辅导员", "校长", "博士生导师"),
    "official_title": ("局长", "副局长", "处长", "科长", "主任", "书记", "秘书长", "新闻发言人"),
    "sport_title": ("主教练", "助理教练", "队长", "守门员", "前锋", "后卫", "领队"),
    "judge_title": ("法官", "审判长", "审判员"),
    "counsel_title": ("律师", "检察官", "法律顾问"),
    "media_title": ("记者", "编辑", "主持人", "导演", "编剧", "摄影师", "评论员"),
}

# Slots of an organisation and of a title that goes with it.
JOBS = (
    ("company", "business_title"), ("firm", "business_title"), ("branch", "business_title"),
    ("user_group", "business_title"), ("hospital", "medical_title"), ("ward", "medical_title"),
    ("school", "school_title"), ("university", "university_title"), ("faculty", "university_title"),
    ("government", "official_title"), ("club", "sport_title"), ("court", "judge_title"),
)

PAST_DAYS = ("昨天", "前天", "今天", "上周一", "上周三", "上周五", "上周六", "本周二")
FUTURE_DAYS = ("明天", "后天", "下周一", "下周二", "下周四", "下周日", "本周五", "本周六")
DAY_PARTS = ("上午", "下午", "晚上", "清晨", "中午", "凌晨")
PAST_YEARS = ("去年", "前年", "今年")
SEASONS = ("春天", "夏天", "秋天", "冬天", "年初", "年底", "暑假", "上半年", "下半年")
HOLIDAYS = ("春节", "国庆节", "中秋节", "元旦", "端午节", "劳动节")
HOUR_MINUTES = ("", "", "半", "10分", "20分", "40分", "一刻")

# Fillers: varied words that are no entities.
FILLERS = {
    "thing": ("雨伞", "书包", "台灯", "椅子", "毛巾", "拖鞋", "窗帘", "水果", "零食", "围巾", "鼠标", "被子"),
    "joy": ("很满意", "特别开心", "非常惊喜", "还算满意", "十分感动", "超级喜欢"),
    "worry": ("有点失望", "不太习惯", "有点担心", "非常生气", "很不满意", "心情复杂"),
    "dish": ("红烧排骨", "番茄炒蛋", "清蒸鲈鱼", "酸辣土豆丝", "小笼包", "牛肉面", "麻婆豆腐", "玉米汤"),
    "activity": ("跑步", "游泳", "爬楼梯", "打羽毛球", "骑车", "练瑜伽", "下棋", "看书"),
    "emoji": ("😀", "👍", "🎉", "😂", "❤️", "😭"),
    "score": ("3", "4", "5", "8", "9", "10", "满"),
    "price": ("19.9", "59", "128", "299", "1999", "3499", "88.5", "4280"),
}
