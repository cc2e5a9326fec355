"""Common words of everyday matters in English, German, Spanish and Chinese.

    "handed in her notice and joins Scottish Water"   employer, manager
    "Konto zur DKB umgezogen"                         bank, dwelling
    "滴酒不沾了"                                       alcohol

Matters are finer than the topics of pipeline/text/topic_words: of 200 memories about a person some
40 have the topic "work", and only a few are about the employer. Words of a change ("notice",
"bought") have the matters that it changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.text.topic_words import WordTable

_WORDS = {
    "employer": """
        employer employed employee employ job company firm join joined hire hired notice resign
        resigned quit fired laid work
        arbeitgeber arbeitet firma stelle gekündigt kündigt kündigung eingestellt anfängt fängt
        wechselt ingenieurbüro büro
        empresa empleador trabaja trabajo fichado contratado contratada despedido renuncia hospital
        clínica puesto
        公司 入职 跳槽 辞职 离职 上班 就职 换工作
    """,
    "manager": """
        boss manager supervisor report reports head lead notice resign join joined hired
        chef chefin vorgesetzte vorgesetzter leiter leiterin gekündigt kündigt anfängt fängt
        jefe jefa supervisor supervisora encargado encargada fichado renuncia contratada
        老板 上司 经理 主管 领导 跳槽 辞职 离职 入职
    """,
    "position": """
        promoted promotion title role position engineer developer teacher nurse analyst head senior
        junior lead designer accountant lawyer architect
        befördert beförderung position ingenieur bauingenieur projektleiter leiter lehrer pfleger
        entwickler architekt buchhalter
        ascendido ascendida ascenso cargo puesto ingeniera enfermera profesora supervisora abogada
        升职 升为 职位 工程师 老师 护士 设计师 会计 总监 主管
    """,
    "salary": """
        salary wage wages pay paid earn earns raise bonus
        gehalt lohn verdient verdienst bekommt gehaltserhöhung brutto netto
        sueldo salario cobra gana nómina aumento
        工资 薪水 月薪 年薪 涨薪 加薪 奖金
    """,
    "working hours": """
        hours shift shifts office remote parttime fulltime start finish schedule weekday
        schicht arbeitszeit teilzeit vollzeit stunden homeoffice feierabend
        horario turno turnos jornada teletrabajo guardias
        点上班 点下班 上班 下班 到岗 作息 加班 早班 晚班 夜班 坐班
    """,
    "colleague": """
        team colleague coworker trainee intern mentor mentee
        team kollege kollegin werkstudent werkstudentin praktikant praktikantin azubi
        equipo compañero compañera becario becaria
        同事 团队 实习生 徒弟 搭档
    """,
    "own business": """
        business startup founder found freelance selfemployed shop company
        selbstständig selbstständigkeit selbständigkeit gründen gründet gründung eigenes laden firma
        negocio empresa autónomo autónoma emprender fundar tienda
        创业 开店 自己开 工作室 自由职业
    """,
    "commute": """
        commute train bus tram bike bicycle cycle cycles cycling underground subway car railcard
        ticket pass drive walk
        pendelt fährt rad fahrrad bahn zug straßenbahn bus deutschlandticket bahncard monatskarte
        metro autobús bici bicicleta tranvía coche abono camina llega pie
        通勤 骑车 地铁 公交 开车 走路 打车 电动车 班车
    """,
    "car": """
        car van vehicle drive drives licence electric petrol parking
        auto wagen fährt führerschein kombi parkplatz werkstatt
        coche furgoneta conduce carné garaje aparcamiento
        车 买车 卖车 开车 车贷 汽车 驾照 停车 比亚迪 特斯拉
    """,
    "dwelling": """
        flat apartment house cottage place home live lives moved bought keys tenement bungalow
        wohnung altbauwohnung haus doppelhaushälfte reihenhaus eigentumswohnung wohnt wohnen zieht
        eingezogen umgezogen ausgezogen bleibe zuhause
        piso ático planta apartamento casa vivienda vive mudado mudó barrio
        住 住在 搬到 搬进 搬家 新房 房子 公寓 小区 买房
    """,
    "rent": """
        rent rental landlord landlady mortgage lease bills tenant deposit cottage bought keys place
        miete vermieter vermieterin warmmiete kaltmiete nebenkosten kaution hauskredit
        doppelhaushälfte gekauft
        alquiler alquila casero casera hipoteca fianza paga
        房租 房东 租金 押金 房贷 月供 买房 新房
    """,
    "flatmate": """
        flatmate roommate housemate share shares sublet alone
        mitbewohner mitbewohnerin wg wohngemeinschaft zusammen allein
        compañero compañera piso comparte sola solo
        合租 室友 同住 一起住 独居 一个人住
    """,
    "course": """
        course class lesson lessons evening training workshop tutor school certificate
        kurs abendkurs sprachkurs unterricht seminar volkshochschule schule
        curso clase clases academia taller escuela
        课程 上课 培训 报名 语言班 补习 班
        spanish italian french german english polish portuguese italienisch spanisch französisch
        englisch italiano francés alemán inglés
        西班牙语 英语 法语 德语 日语
    """,
    "exam": """
        exam test pass passed study thesis degree certificate level
        prüfung klausur abschluss zertifikat bestanden masterarbeit
        examen oposiciones opositar opositora temario prueba certificado academia
        考试 备考 准备考 考过 考证 考研 毕业 证书 语言班 西班牙语
    """,
    "telephone": """
        phone smartphone iphone pixel samsung galaxy android handset number
        handy telefon telefoniert smartphone iphone samsung galaxy handynummer
        móvil teléfono iphone samsung xiaomi
        手机 华为 苹果手机 小米 iphone 换手机 电话
    """,
    "computer": """
        laptop computer macbook thinkpad desktop tablet notebook
        laptop rechner computer notebook tablet
        portátil ordenador tableta
        电脑 笔记本 平板
    """,
    "bank": """
        bank account customer branch card savings
        bank sparkasse volksbank konto girokonto kunde kundin karte
        banco cuenta domiciliada nómina cobra tarjeta cliente
        银行 账户 银行卡 开户 工资卡
    """,
    "debt": """
        loan debt owe owes owed lent borrowed repaid paid back instalment
        schuldet schulden kredit geliehen zurückgezahlt abbezahlt darlehen rate
        debe deuda préstamo prestado devuelto dinero plazos
        欠 贷款 车贷 房贷 还清 还钱 借 借钱 分期
    """,
    "alcohol": """
        alcohol beer wine whisky whiskey gin sober drink drinks pub cocktail
        alkohol bier wein pils feierabendbier trinkt nüchtern
        alcohol cerveza vino copa bebe caña
        酒 喝酒 米酒 白酒 啤酒 红酒 滴酒 戒酒
    """,
    "coffee": """
        coffee caffeine tea espresso cappuccino latte flat white decaf rooibos
        kaffee koffein tee espresso cappuccino
        café cafeína té infusión cortado descafeinado
        咖啡 茶 绿茶 红茶 奶茶 拿铁 咖啡因
    """,
    "meals": """
        vegan vegetarian meat fish eat eats diet breakfast lunch dinner lactose gluten
        vegan vegetarisch vegetarierin fleisch fisch isst ernährt frühstück mittagessen
        vegana vegetariana carne pescado come dieta desayuna
        吃素 素食 吃肉 早餐 早饭 午饭 晚饭 减肥 饮食
    """,
    "allergy": """
        allergy allergic rash hives intolerant intolerance reaction nuts shellfish pollen
        allergie allergisch ausschlag unverträglichkeit verträgt nüsse heuschnupfen
        alergia alérgica alérgico intolerante marisco polen ronchas
        过敏 疹子 起疹 海鲜 虾 花粉
    """,
    "teeth": """
        dentist teeth tooth braces aligner retainer orthodontist
        zahnarzt zahnärztin zähne zahn zahnspange schiene
        dentista dientes muelas ortodoncia aparato aparatos brackets
        牙 牙医 牙齿 牙套 矫正
    """,
    "injury": """
        injury injured knee ankle back shoulder operation surgery physiotherapy crutches healed
        verletzung knie rücken schulter operation operiert krücken physiotherapie bandscheibe
        lesión rodilla tobillo espalda operación operado rehabilitación muletas
        受伤 膝盖 脚踝 手术 康复 拐杖 理疗
    """,
    "medication": """
        medication medicine pill pills tablet tablets dose inhaler antibiotics
        medikament medikamente tablette tabletten dosis spray
        medicación medicamento pastilla pastillas dosis
        吃药 药 药物 药片 停药
    """,
    "smoking": """
        smoke smokes smoker cigarette cigarettes vape
        raucht raucher rauchen zigarette zigaretten
        fuma fumar fumadora tabaco cigarrillos
        抽烟 吸烟 戒烟 香烟
    """,
    "sleep": """
        sleep sleeps wake wakes alarm bed insomnia early night
        schläft schlaf wecker aufstehen steht schlafstörung
        duerme sueño despierta insomnio madruga
        睡 睡觉 失眠 起床 早起 熬夜
    """,
    "fitness": """
        gym run runs running marathon swim yoga climbing tennis football trainer membership
        fitnessstudio läuft joggt marathon schwimmt yoga klettert tennis fußball verein
        gimnasio corre maratón nada yoga escalada tenis fútbol
        健身 健身房 跑步 马拉松 游泳 瑜伽 羽毛球 网球 篮球
    """,
    "instrument": """
        instrument concertina squeezebox accordion fiddle violin viola cello guitar ukulele piano
        keyboard flute clarinet trumpet saxophone drum drums banjo harp folk session
        instrument akkordeon geige bratsche cello gitarre klavier flöte klarinette trompete saxofon
        schlagzeug
        instrumento acordeón violín violonchelo guitarra piano flauta clarinete trompeta saxofón
        batería
        吉他 钢琴 小提琴 大提琴 古筝 二胡 笛子 鼓 琵琶
    """,
    "wedding": """
        wedding marry marries married bridesmaid engaged engagement fiancé bride groom ceremony
        hochzeit heiratet geheiratet verlobt trauzeugin trauzeuge braut
        boda casarse casado casada prometida dama novia ceremonia
        结婚 婚礼 订婚 伴娘 领证 婚期
    """,
    "partner": """
        partner boyfriend girlfriend husband wife dating together split broke single
        freund freundin partnerin ehemann ehefrau zusammen getrennt single
        novio novia pareja marido mujer juntos separado soltera
        男友 女友 男朋友 女朋友 丈夫 妻子 分手 单身 恋爱
    """,
    "child": """
        baby pregnant birth daughter son child born nursery kindergarten
        baby schwanger geburt tochter sohn kind kita geboren
        bebé embarazada parto hija hijo guardería nació
        怀孕 宝宝 出生 女儿 儿子 孩子 幼儿园
    """,
    "pet": """
        dog cat puppy kitten rabbit hamster horse parrot pet vet shelter
        hund katze welpe kater kaninchen pferd haustier tierarzt tierheim
        perro perra gato gata conejo mascota veterinaria protectora
        狗 猫 小狗 小猫 宠物 兔子 仓鼠 兽医
    """,
    "garden": """
        garden allotment plot greenhouse vegetable vegetables balcony
        garten kleingarten kleingartenverein schrebergarten parzelle beet gewächshaus
        huerto jardín parcela invernadero
        花园 菜园 种菜 种花 阳台
    """,
    "abroad": """
        abroad emigrate emigration move country spain germany france italy portugal japan canada
        australia visa
        ausland auswandern spanien deutschland frankreich italien portugal japan kanada
        auslandsjahr extranjero emigrar emigra españa alemania francia italia portugal japón canadá
        quedarse queda
        出国 移民 国外 留学 日本 德国 法国 加拿大 西班牙 签证
    """,
    "journey": """
        trip travel holiday flight hotel booked cancelled visit
        reise urlaub flug hotel gebucht storniert
        viaje vacaciones vuelo hotel reservado
        旅行 旅游 机票 酒店 行程 度假
    """,
    "reading": """
        book novel reading reads author finished library
        buch roman liest gelesen autor autorin bücherei
        libro novela lee leyendo terminado autora
        看书 书 小说 读完 在读 作家
    """,
    "series": """
        series season show film watch watches streaming netflix
        serie staffel film schaut streamt
        serie temporada película ve viendo
        电视剧 追剧 电影 综艺 看完
    """,
}

_TABLE = WordTable(_WORDS)


def matters_of(words: Sequence[str]) -> frozenset[str]:
    """The matters of a text by its terms."""
    return _TABLE.groups_of(words)
