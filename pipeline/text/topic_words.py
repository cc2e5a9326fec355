"""Common words of everyday topics in English, German, Spanish and Chinese.

    "was promoted to head of sales"   work
    "kauft eine Eigentumswohnung"     home
    "换了一台新手机"                    device

A statement of a change often shares no word with the memory that it changes, but nearly always its
topic. The topics are those of pipeline/text/topics. A German compound has the topic of its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from pipeline.text.terms import terms

_WORDS = {
    "home": """
        home house flat apartment cottage bungalow studio room bedroom kitchen landlord landlady
        tenant rent rental lease mortgage move moved moving address roommate flatmate housemate
        neighbour neighborhood street furniture sofa balcony live reside residence hostel condo
        wohnung haus hausboot zimmer miete mieter vermieter umgezogen gezogen
        eingezogen ausgezogen zieht adresse straße mitbewohner mitbewohnerin wohngemeinschaft
        nachbar nachbarin küche balkon wohnt wohnen zuhause
        casa piso apartamento ático vivienda habitación alquiler alquila casero mudanza mudado mudó
        mudarse planta barrio compañero vive vivir vecino vecina calle dirección
        住 住在 搬到 搬家 搬进 房子 房租 房东 公寓 合租 室友 租房 买房 新房 新家 小区 邻居 地址
    """,
    "work": """
        work job employer employ employee company firm office boss manager supervisor colleague
        coworker team salary wage pay raise promotion promoted career hired fired quit resign notice
        shift intern internship contract freelance position role engineer teacher nurse developer
        accountant consultant analyst director meeting project remote retire retired unemployed
        arbeit arbeitet arbeiten arbeitgeber firma büro chef chefin vorgesetzte kollege kollegin
        gehalt lohn verdient beförderung befördert stelle beruf kündigt gekündigt kündigung schicht
        praktikum selbstständig selbständig selbstständigkeit homeoffice leiter leiterin ingenieur
        lehrer projekt besprechung dienst
        trabajo trabaja trabajar empresa oficina jefe jefa supervisor supervisora compañero
        compañera sueldo salario cobra gana nómina ascenso puesto empleo contrato turno guardia
        renuncia despedido despedida dimitió empleador prácticas ingeniero profesora enfermera
        proyecto reunión teletrabajo
        工作 上班 下班 公司 老板 上司 经理 同事 工资 薪水 月薪 升职 跳槽 辞职 离职 入职 职位 加班
        实习 办公 兼职 项目 会议 部门 主管 在家办公
    """,
    "study": """
        study student university college school class course lesson lecture exam degree thesis
        diploma certificate graduate graduated academy tuition tutor homework semester learn
        language training workshop
        studium studiert student studentin universität uni schule kurs sprachkurs prüfung abschluss
        bachelor master ausbildung klausur lernt lernen unterricht semester hochschule
        estudia estudio estudios estudiante universidad escuela colegio clase curso examen título
        máster academia matrícula aprende asignatura
        学习 学校 大学 课程 上课 考试 备考 学位 毕业 考研 专业 老师 学生 培训 补习
    """,
    "love": """
        partner boyfriend girlfriend husband wife spouse fiance fiancee married marry marriage
        wedding engaged engagement divorce divorced single dating date relationship honeymoon
        pregnant baby anniversary
        freund freundin ehemann ehefrau mann verheiratet verlobt hochzeit heiratet geschieden
        scheidung beziehung getrennt schwanger flitterwochen partnerin
        pareja novio novia marido esposa esposo casado casada boda casarse comprometida divorcio
        soltero soltera embarazada bebé relación
        结婚 男友 女友 男朋友 女朋友 丈夫 妻子 老公 老婆 订婚 婚礼 离婚 单身 恋爱 分手 怀孕 领证
    """,
    "family": """
        mother father mum mom dad parent grandmother grandfather grandma grandpa granny sister
        brother sibling daughter son child children aunt uncle cousin niece nephew family
        mutter vater mama papa eltern oma opa großmutter großvater schwester bruder tochter sohn
        kind kinder tante onkel nichte neffe familie schwiegermutter
        madre padre mamá papá padres abuela abuelo hermana hermano hija hijo tía tío prima primo
        sobrina sobrino familia suegra
        妈妈 爸爸 父亲 母亲 父母 奶奶 爷爷 外婆 外公 姐姐 妹妹 哥哥 弟弟 女儿 儿子 孩子 阿姨 家人
    """,
    "food": """
        eat food diet vegan vegetarian meat fish vegetable fruit breakfast lunch dinner meal cook
        restaurant coffee tea drink caffeine alcohol beer wine sugar bread cheese allergy allergic
        gluten dairy lactose snack dessert bake sandwich espresso soup sober
        isst essen ernährung vegan vegetarisch fleisch fisch gemüse obst frühstück mittagessen
        abendessen kocht kochen restaurant kaffee tee trinkt trinken alkohol bier wein pils zucker
        brot käse wurst bratwurst nuss nüsse allergie allergisch glutenfrei laktose
        come comer comida dieta vegana vegano vegetariana vegetariano carne pescado verdura fruta
        desayuno desayuna almuerzo cena cocina restaurante café té bebe beber alcohol cerveza vino
        azúcar pan queso alergia alérgica alérgico gluten lactosa
        吃 喝 素食 吃素 吃肉 早餐 早饭 午饭 午餐 晚饭 晚餐 做饭 餐厅 咖啡 喝茶 绿茶 红茶 奶茶
        酒 喝酒 米酒 白酒 啤酒 红酒 戒酒 过敏 海鲜 减肥 零食 火锅 饮食
    """,
    "health": """
        health doctor dentist hospital clinic surgery operation medication medicine pill tablet
        therapy therapist physiotherapy diagnosis illness ill sick injury injured knee back pain
        sleep smoke smoking cigarette allergy allergic weight glasses braces orthodontist blood
        asthma diabetes migraine cured healed recovered
        gesund gesundheit arzt ärztin zahnarzt krankenhaus klinik operation operiert medikament
        tablette therapie therapeutin diagnose krank krankheit verletzung knie rücken schmerzen
        schlaf schläft raucht rauchen zigaretten allergie gewicht brille zahnspange blutdruck asthma
        migräne geheilt
        salud médico médica doctor doctora dentista hospital clínica operación medicación medicina
        pastilla pastillas terapia psicóloga diagnóstico enfermo enferma lesión rodilla espalda
        dolor duerme fuma fumar tabaco alergia peso gafas ortodoncia dientes asma migraña
        健康 医生 牙医 医院 手术 吃药 药物 治疗 检查 生病 受伤 膝盖 睡觉 睡眠 失眠 抽烟 戒烟
        过敏 体重 眼镜 牙套 血压 近视 康复
    """,
    "sport": """
        sport exercise workout run running marathon race gym fitness yoga pilates swim swimming
        climb climbing tennis football soccer basketball hiking hike ski cycling trainer coach
        training club membership
        sport läuft laufen joggt marathon fitness fitnessstudio studio gym yoga schwimmt schwimmen
        klettern klettert tennis fußball handball wandern wandert verein mitgliedschaft training
        trainiert trainer
        deporte ejercicio corre correr maratón gimnasio yoga nada nadar natación escalada tenis
        fútbol baloncesto senderismo entrena entrenador entrenamiento
        运动 健身 跑步 马拉松 瑜伽 游泳 爬山 攀岩 网球 足球 篮球 羽毛球 锻炼 教练 健身房 徒步
    """,
    "music": """
        music instrument band choir concert guitar piano violin fiddle cello flute drum drums sing
        singer song accordion trumpet saxophone rehearsal orchestra
        musik band chor konzert gitarre klavier geige cello flöte schlagzeug singt akkordeon
        trompete saxofon orchester
        música banda coro concierto guitarra piano violín violonchelo flauta batería canta acordeón
        trompeta saxofón orquesta clarinete
        音乐 乐队 合唱 演唱会 吉他 钢琴 小提琴 大提琴 唱歌 古筝 二胡 鼓
    """,
    "reading": """
        book novel read reading author poem magazine newspaper podcast newsletter library
        buch roman liest lesen autor autorin zeitung zeitschrift gelesen bücherei
        libro novela lee leer leyendo autor autora revista periódico biblioteca
        书 看书 小说 作家 作者 读书 阅读 杂志 报纸 播客 读完
    """,
    "screen": """
        film movie series show episode season watch television tv game gaming console
        film serie folge staffel fernsehen schaut spielfilm videospiel konsole kino
        película serie episodio temporada televisión videojuego consola cine
        电影 电视 电视剧 追剧 剧集 综艺 游戏
    """,
    "money": """
        bank account loan debt savings invest investment insurance salary rent tax budget mortgage
        credit money owe repaid repay payment euro pound dollar stock fund pension
        bank sparkasse konto kredit schulden sparen spart versicherung gehalt miete steuer budget
        geld schuldet zurückgezahlt aktien fonds rente
        banco cuenta préstamo deuda ahorro ahorra ahorros seguro sueldo alquiler impuesto
        presupuesto dinero debe acciones hipoteca nómina
        银行 账户 贷款 房贷 欠 还清 还钱 存钱 储蓄 投资 保险 工资 房租 预算 股票 基金 借钱
    """,
    "travel": """
        travel trip holiday vacation journey flight fly hotel passport visa abroad emigrate country
        beach honeymoon camping
        reise reist reisen urlaub flug fliegt hotel reisepass visum ausland auswandern land camping
        viaje viaja viajar vacaciones vuelo hotel pasaporte visado extranjero emigrar emigra playa
        旅行 旅游 出差 度假 假期 航班 飞机 酒店 护照 签证 出国 移民 海边
    """,
    "transport": """
        car vehicle van bicycle bike cycle cycling scooter motorcycle bus tram train underground
        subway commute drive driving licence parking walk garage
        auto wagen fahrrad rad roller motorrad bus bahn straßenbahn zug ubahn pendelt fährt
        führerschein parkplatz
        coche vehículo furgoneta bicicleta bici moto autobús tranvía tren metro conduce conducir
        carné aparcamiento
        车 开车 买车 汽车 电动车 自行车 骑车 摩托车 公交 地铁 火车 通勤 驾照 停车     """,
    "animal": """
        pet dog cat puppy kitten rabbit hamster horse bird parrot vet tortoise
        haustier hund katze welpe kater kaninchen pferd vogel tierarzt hündin
        mascota perro perra gato gata cachorro conejo caballo pájaro veterinario
        宠物 狗 猫 小狗 小猫 养狗 养猫 兔子 仓鼠 鹦鹉 兽医
    """,
    "device": """
        phone smartphone iphone pixel samsung galaxy laptop macbook thinkpad computer tablet camera
        headphones internet software app printer
        handy telefon smartphone laptop rechner computer tablet kamera internet drucker
        móvil teléfono portátil ordenador tableta cámara internet impresora
        手机 华为 苹果 小米 电脑 笔记本 平板 相机 耳机 软件 iphone
    """,
    "garden": """
        garden gardening allotment plot plant greenhouse lawn tomato flower
        garten schrebergarten gewächshaus pflanzen beet rasen blumen
        jardín huerto plantas invernadero césped flores
        花园 种花 种菜 阳台 植物
    """,
    "event": """
        party wedding birthday celebration appointment event plan meeting anniversary festival
        feier feiert hochzeit geburtstag termin fest jubiläum
        fiesta boda cumpleaños celebración cita evento aniversario
        派对 婚礼 生日 聚会 约会 预约 活动 庆祝
    """,
    "craft": """
        hobby craft knit knitting sew sewing paint painting pottery photography draw woodwork
        hobby strickt stricken näht nähen malt malen töpfern fotografiert basteln
        afición pinta pintar cose coser cerámica fotografía dibuja punto
        爱好 画画 摄影 手工 陶艺 编织 书法
    """,
    "time": """
        morning evening early late wake alarm schedule weekday weekend hour bedtime
        morgens abends früh spät wecker aufstehen wochenende uhr
        mañana tarde noche temprano horario despierta madruga
        早上 晚上 起床 早起 熬夜 点上班 时间 周末
    """,
}


# Fewest letters of a word that is looked up at the end of a compound, and of its first part.
MIN_END, MIN_START = 4, 3


class WordTable:
    """Groups of words, looked up by term. A compound has the groups of its longest known end."""

    def __init__(self, words: Mapping[str, str]) -> None:
        groups: dict[str, set[str]] = {}
        for group, text in words.items():
            for term in terms(text):
                groups.setdefault(term, set()).add(group)
        self._groups = {term: frozenset(names) for term, names in groups.items()}
        self._groups_of_term = lru_cache(maxsize=20_000)(self._look_up)

    def groups_of(self, words: Sequence[str]) -> frozenset[str]:
        """The groups of a text by its terms."""
        return frozenset(group for word in words for group in self._groups_of_term(word))

    def _look_up(self, term: str) -> frozenset[str]:
        ends = (term[at:] for at in range(MIN_START, len(term) - MIN_END + 1))
        known = (self._groups[end] for end in (term, *ends) if end in self._groups)
        return next(known, frozenset())


_TABLE = WordTable(_WORDS)


def topics_of(words: Sequence[str]) -> frozenset[str]:
    """The topics of a text by its terms."""
    return _TABLE.groups_of(words)
