"""First sentences of newcomers in chats, and the facts that `local/rules` reads.

A wrong fact is worse than a lost one: a trial must not store nonsense.
"""

from __future__ import annotations

import pytest

from tests.support.right_facts import parts, read, table

READ = """
Hi, I'm Priya and I work at Siemens. => User's name is Priya | User works at Siemens
My name is Tom Becker, I'm 34 years old. => User's name is Tom Becker | User is 34 years old
Call me Sam. => User's name is Sam
I'm Laura, a data engineer at Spotify in Stockholm. => \
User's name is Laura | User works as a data engineer at Spotify in Stockholm
Hey there! I'm Marcus. => User's name is Marcus
I am 41. => User is 41 years old
I'm 29, vegan and live in Portland. => User is 29 years old | User is vegan | User lives in Portland
I turned 30 last month. => User is 30 years old (since 2026-02)
My birthday is on the 3rd of October. => User's birthday is October 3
My birthday is March 14. => User's birthday is March 14
I was born in 1988 in Kraków. => User was born in Kraków in 1988
I'm a teacher from Glasgow who loves cycling. => \
User works as a teacher | User is from Glasgow | User loves cycling
I'm a backend developer at a small startup in Berlin. => \
User works as a backend developer at a small startup in Berlin
I work as a nurse at St. Mary's Hospital. => User works as a nurse at St. Mary's Hospital
I've been working at Datadog for three years. => User works at Datadog (since 2023)
I just started a new job at Stripe. => User works at Stripe
I got promoted to engineering manager last week. => \
User works as engineering manager (promoted in the week of 2026-03-02)
I quit my job at Oracle. => User no longer works at Oracle
I run a bakery in Lyon with my brother. => User runs a bakery in Lyon with their brother
I'm self-employed. => User is self-employed
I study physics at ETH Zurich. => User studies physics at ETH Zurich
I'm retired. => User is retired
I live in Amsterdam. => User lives in Amsterdam
I moved from Madrid to Lisbon last year. => User lives in Lisbon (moved from Madrid in 2025)
I'm originally from Ghana but I live in Toronto now. => User is from Ghana | User lives in Toronto
We live in a small village near Oxford. => User lives in a small village near Oxford
I just moved to Austin, Texas. => User lives in Austin, Texas
We're moving to Denver in June. => User plans to move to Denver in 2026-06
I grew up in Ohio. => User grew up in Ohio
I'm based in Singapore. => User lives in Singapore
My wife is called Anna and we have two kids. => User's wife is Anna | User has two kids
I have two daughters, Mia and Zoe. => User has two daughters, Mia and Zoe
My husband Daniel works as a chef. => User's husband is Daniel | Daniel works as a chef
My mother lives in Florence. => User's mother lives in Florence
I'm married to Kenji. => User is married to Kenji
My sister is a doctor in Boston. => User's sister works as a doctor in Boston
My son Leo is five and loves dinosaurs. => \
User's son is Leo | Leo is five years old | Leo loves dinosaurs
My girlfriend and I got engaged yesterday. => User is engaged (since 2026-03-08)
I have a younger brother named Paul. => User's younger brother is Paul
We're expecting a baby in March. => User is expecting a baby in 2026-03
My parents live in Turkey. => User's parents live in Turkey
I have a dog named Rex. => User has a dog named Rex
I've got two cats, Luna and Felix. => User has two cats, Luna and Felix
Our dog's name is Biscuit. => User has a dog named Biscuit
We adopted a kitten last weekend. => User adopted a kitten on the weekend of 2026-03-07
My hamster died. => User's hamster died
I'm allergic to peanuts. => User is allergic to peanuts
I'm lactose intolerant. => User is lactose intolerant
I'm vegetarian but I eat fish sometimes. => User is vegetarian | User eats fish sometimes
I don't eat pork. => User does not eat pork
I can't eat gluten. => User cannot eat gluten
My daughter is allergic to bee stings. => User's daughter is allergic to bee stings
I have celiac disease, so no bread for me. => User has celiac disease
I stopped drinking coffee. => User no longer drinks coffee
I drink my coffee black. => User drinks their coffee black
I love hiking and hate running. => User loves hiking | User hates running
My favorite color is green. => User's favourite colour is green
My favourite band is Radiohead. => User's favourite band is Radiohead
I prefer tea over coffee. => User prefers tea over coffee
I can't stand cilantro. => User hates cilantro
I'm a big fan of Arsenal. => User likes Arsenal
I enjoy playing the guitar in my free time. => User enjoys playing the guitar in their free time
I don't like horror movies. => User does not like horror movies
I'm really into board games. => User likes board games
I like my steak medium rare. => User likes their steak medium rare
I prefer window seats on flights. => User prefers window seats on flights
I play chess every Tuesday. => User plays chess every Tuesday
I go to the gym three times a week. => User goes to the gym three times a week
I'm training for the Berlin marathon. => User is training for the Berlin marathon
I'm planning a trip to Japan in April. => User is planning a trip to Japan in 2026-04
I have a dentist appointment on Friday. => User has a dentist appointment on 2026-03-13
Next week I'm flying to New York for a conference. => \
User plans to fly to New York for a conference in the week of 2026-03-16
I want to learn Rust this year. => User wants to learn Rust in 2026
My flight leaves tomorrow at 9am. => User's flight is on 2026-03-10 at 9am
I speak German and a little French. => User speaks German | User speaks a little French
I speak three languages: English, Hindi and Tamil. => \
User speaks three languages: English, Hindi and Tamil
My native language is Portuguese. => User's native language is Portuguese
I'm learning Spanish. => User is learning Spanish
Actually, I live in Leeds now. => User lives in Leeds
No wait, I'm 36, not 35. => User is 36 years old
I no longer work at Intel. => User no longer works at Intel
I'm not vegetarian anymore. => User is no longer vegetarian
I switched from VS Code to Neovim. => User switched from VS Code to Neovim
I use Python and Go at work. => User uses Python and Go at work
I write Kotlin for a living. => User writes Kotlin for a living
I use a MacBook for work and Linux at home. => User uses a MacBook for work and Linux at home
We use PostgreSQL in production. => User uses PostgreSQL in production
I drive a Toyota Corolla. => User drives a Toyota Corolla
I drive an electric car and live in Oslo. => User drives an electric car | User lives in Oslo
My phone number is 555-0182. => User's phone number is 555-0182
My email is jo.martin@example.com. => User's email is jo.martin@example.com
I'm left-handed. => User is left-handed
I have diabetes. => User has diabetes
I wear glasses. => User wears glasses
I'm scared of heights. => User is scared of heights
I don't have any kids. => User does not have any kids
I used to live in Rome. => User used to live in Rome
I used to smoke but quit two years ago. => User used to smoke
My boss is Helen, she's based in Dublin. => User's boss is Helen | Helen lives in Dublin
My colleague Raj likes cricket. => User's colleague is Raj | Raj likes cricket
My best friend Emma lives in Paris. => User's best friend is Emma | Emma lives in Paris
Bob works at Google. => Bob works at Google
Peter's wife is called Claire. => Peter's wife is Claire
I'm Jan, 52, from Utrecht, and I collect vinyl records. => \
User's name is Jan | User is 52 years old | User is from Utrecht | User collects vinyl records
I'm a software engineer, I live in Seattle and I have a cat called Miso. => \
User works as a software engineer | User lives in Seattle | User has a cat named Miso
My name is Olivia, I'm a vegan and I work for the city council. => \
User's name is Olivia | User is vegan | User works at the city council
I live in Prague with my girlfriend Petra and our two dogs. => \
User's girlfriend is Petra | User lives in Prague with their girlfriend Petra and their two dogs
I work from home on Mondays and Fridays. => User works from home on Mondays and Fridays
I usually wake up at 6. => User usually wakes up at 6
I hold a PhD in chemistry. => User holds a PhD in chemistry
I'm a father of three. => User is a father of three
I support Liverpool. => User supports Liverpool
Remember that my wifi is called Hobbiton. => User's wifi is called Hobbiton
hey, quick intro: I'm Ben, 31, from Manchester, working as a product manager at Monzo => \
User's name is Ben | User is 31 years old | User is from Manchester | \
User works as a product manager at Monzo
Hi I'm Sofia, I live in Milan and I'm vegetarian. => \
User's name is Sofia | User lives in Milan | User is vegetarian
I'm 45, married, two kids. => User is 45 years old
I'm a vegan software engineer living in Berlin. => \
User is vegan | User works as a software engineer | User lives in Berlin
I'm a nurse, 38, and I love gardening. => \
User works as a nurse | User is 38 years old | User loves gardening
I'm a single mom of two boys. => User is a single mom of two boys
I'm a 26 year old student from Delft. => \
User is 26 years old | User is a student | User is from Delft
I am a developer and I have a dog. => User works as a developer | User has a dog
I'm an American living in Paris. => User is an American | User lives in Paris
I'm a Canadian who works in London. => User is a Canadian | User works in London
I'm a freelance illustrator. => User works as a freelance illustrator
I'm a data scientist. => User works as a data scientist
I'm the CTO of a fintech startup. => User works as the CTO of a fintech startup
I'm an SRE at Cloudflare. => User works as an SRE at Cloudflare
I'm in my thirties. => User is in their thirties
I'm from Dublin, Ireland, but currently living in Berlin. => \
User is from Dublin, Ireland | User lives in Berlin
I'm allergic to cats but I have two of them. => User is allergic to cats
I'm lactose intolerant and allergic to shellfish. => \
User is lactose intolerant | User is allergic to shellfish
I'm Hannah and this is my first time here. => User's name is Hannah
I'm Jo, nice to meet you. => User's name is Jo
I'm Chris by the way. => User's name is Chris
My name's Ali. => User's name is Ali
My name is Wei but everyone calls me Wayne. => User's name is Wei
You can call me Max. => User's name is Max
People call me Kat. => User's nickname is Kat
My full name is Roberto Carlos Diaz. => User's name is Roberto Carlos Diaz
My birthday is on May 7th. => User's birthday is May 7
My birthday is the 21st of June. => User's birthday is June 21
I was born on July 4, 1990 in Chicago. => User was born in Chicago on 1990-07-04
I just turned 50! => User is 50 years old
My age is 33. => User is 33 years old
I work at a hospital. => User works at a hospital
I work for myself. => User is self-employed
I work in marketing at Unilever. => User works in marketing at Unilever
I work as a freelance designer. => User works as a freelance designer
I work at Netflix, I'm a UX designer there. => User works at Netflix
I work part-time at a bookstore and study law. => \
User works part-time at a bookstore | User studies law
I got laid off from Meta last week. => User got laid off from Meta in the week of 2026-03-02
I'm starting at Airbnb on Monday. => User plans to start at Airbnb on 2026-03-09
I'm joining OpenAI next month. => User plans to join OpenAI in 2026-04
I left Amazon and joined Shopify. => User joined Shopify
I lead the platform team at Zalando. => User leads the platform team at Zalando
I teach math at a high school in Boston. => User teaches math at a high school in Boston
I own a small coffee shop. => User owns a small coffee shop
I'm studying medicine in Vienna. => User is studying medicine in Vienna
I graduated from UCLA with a degree in economics. => \
User graduated from UCLA with a degree in economics
My company is called Brightside. => User's company is named Brightside
My manager's name is Olga. => User's manager is Olga
I live with my parents in Lyon. => User lives with their parents in Lyon
I live in Lisbon with my wife and our son. => User lives in Lisbon with their wife and their son
I live in a two-bedroom apartment in Queens. => User lives in a two-bedroom apartment in Queens
I'm living in Tokyo at the moment. => User lives in Tokyo
I've been living in Vienna since 2018. => User lives in Vienna (since 2018)
I live near Boston, about an hour away. => User lives near Boston, about an hour away
I relocated from India to Canada in 2020. => User lives in Canada (moved from India in 2020)
I'm staying at a hotel in Rome until Sunday. => \
User plans to stay at a hotel in Rome until 2026-03-15
I'm visiting my parents in Ohio next weekend. => \
User plans to visit their parents in Ohio on the weekend of 2026-03-21
I'm getting married in September. => User plans to get married in 2026-09
I've been married to Julia for ten years. => User is married to Julia (since 2016)
I got divorced in 2021. => User is divorced (since 2021)
My daughter turned 3 yesterday. => User's daughter is 3 years old (since 2026-03-08)
My daughter Ella starts school in September. => User's daughter is Ella
My daughter's name is Ida and she is 6. => User's daughter is Ida | Ida is 6 years old
My son is 12 years old. => User's son is 12 years old
My brother is getting married in May. => User's brother plans to get married in 2026-05
My brother works at NASA. => User's brother works at NASA
My wife is pregnant. => User's wife is pregnant
My wife works as a lawyer and my son goes to kindergarten. => \
User's wife works as a lawyer | User's son goes to kindergarten
My wife Maria is from Chile and speaks Spanish. => \
User's wife is Maria | Maria is from Chile | Maria speaks Spanish
My partner is allergic to nuts. => User's partner is allergic to nuts
My mom's birthday is June 2. => User's mom's birthday is June 2
My mom is 70 and lives alone. => User's mom is 70 years old | User's mom lives alone
My dad died last year. => User's dad died in 2025
My dad is a retired pilot. => User's dad is a retired pilot
My grandparents are from Italy. => User's grandparents are from Italy
My two sisters live in Cork. => User's two sisters live in Cork
I have three brothers. => User has three brothers
I have an older sister, Nina. => User has an older sister, Nina
I have a wife and three kids. => User has a wife | User has three kids
I have a son who plays football. => User has a son | User's son plays football
My cat Simba is 3 years old. => User has a cat named Simba | User's cat Simba is 3 years old
My dog Rex hates thunder. => User has a dog named Rex | User's dog Rex hates thunder
I have a golden retriever named Max. => User has a golden retriever named Max
I have a cat. => User has a cat
We have a parrot that can talk. => User has a parrot that can talk
I used to have a cat. => User used to have a cat
I lost my dog last month. => User lost their dog in 2026-02
I love dogs. => User loves dogs
I'm vegan, so no dairy please. => User is vegan
I follow a gluten-free diet. => User is gluten-free
I avoid sugar. => User avoids sugar
I don't drink alcohol. => User does not drink alcohol
I don't like mushrooms or olives. => User does not like mushrooms | User does not like olives
I hate mornings. => User hates mornings
I love Italian food, especially pasta. => User loves Italian food | User loves pasta
I like my coffee with oat milk. => User likes their coffee with oat milk
I like to cook Thai food. => User likes to cook Thai food
I love spicy food but my husband doesn't. => User loves spicy food
I really enjoy trail running and bouldering. => User enjoys trail running | User enjoys bouldering
I love playing tennis with my brother. => User loves playing tennis with their brother
I'm not into sports. => User is not into sports
My favorite movie is The Matrix. => User's favourite movie is The Matrix
My favorite programming language is Rust. => User's favourite programming language is Rust
My favorite food is sushi and my favorite drink is tea. => \
User's favourite food is sushi | User's favourite drink is tea
My hobbies are climbing, chess and reading. => User's hobbies are climbing, chess and reading
I'm a morning person. => User is a morning person
I'm an introvert. => User is an introvert
I'm not a morning person. => User is not a morning person
I'm learning to play the piano. => User is learning to play the piano
I'm learning Rust and Go. => User is learning Rust | User is learning Go
I'm currently reading Dune. => User is reading Dune
I'm a beginner in Python. => User is a beginner in Python
I code mostly in TypeScript. => User codes mostly in TypeScript
I prefer dark mode. => User prefers dark mode
I prefer Python to Java. => User prefers Python over Java
I prefer short answers. => User prefers short answers
I play bass in a band. => User plays bass in a band
I play football on Sundays and tennis on Wednesdays. => \
User plays football on Sundays and tennis on Wednesdays
I run marathons. => User runs marathons
I ran my first marathon in Boston. => User ran their first marathon in Boston
I'm going to Greece in July with my family. => \
User plans to go to Greece with their family in 2026-07
I'm going to the dentist tomorrow. => User plans to go to the dentist on 2026-03-10
I have a job interview at Tesla on Thursday. => User has a job interview at Tesla on 2026-03-12
I have an exam next Tuesday at 10. => User has an exam on 2026-03-10 at 10
My passport number is X1234567. => User's passport number is X1234567
My car is a red Honda Civic. => User's car is a red Honda Civic
My car broke down yesterday. => User's car broke down on 2026-03-08
I bought a new laptop last week. => User bought a new laptop in the week of 2026-03-02
I just bought a house in Bristol. => User bought a house in Bristol
I want to lose 5 kg by summer. => User wants to lose 5 kg by summer
I want to buy a car. => User wants to buy a car
I plan to quit smoking. => User plans to quit smoking
I need to call my mom tomorrow. => User needs to call their mom on 2026-03-10
I have to finish my thesis by June. => User has to finish their thesis by 2026-06
I have asthma and hay fever. => User has asthma | User has hay fever
I have high blood pressure. => User has high blood pressure
I have a bad back. => User has a bad back
I broke my leg last month. => User broke their leg in 2026-02
I take insulin twice a day. => User takes insulin twice a day
I'm colorblind. => User is colorblind
I'm afraid of flying. => User is afraid of flying
I speak fluent Italian. => User speaks fluent Italian
I speak English and my wife speaks Korean. => User speaks English | User's wife speaks Korean
I don't speak French very well. => User does not speak French very well
Spanish is my first language. => User's first language is Spanish
I grew up in Kenya and moved to the UK when I was 12. => \
User grew up in Kenya | User lives in the UK
Actually, I'm 35. => User is 35 years old
Actually, I moved to Bern last week. => User lives in Bern (moved in the week of 2026-03-02)
Actually, my wife's name is Mary, not Marie. => User's wife is Mary
Correction: my birthday is June 5th. => User's birthday is June 5
Scratch that, I live in Ghent. => User lives in Ghent
I was wrong, my flight is on Tuesday. => User's flight is on 2026-03-10
I don't work at Google anymore, I'm at Apple now. => User no longer works at Google
I'm no longer vegan. => User is no longer vegan
I use Vim. => User uses Vim
My timezone is CET. => User's timezone is CET
My pronouns are she/her. => User's pronouns are she/her
Can you remember that I'm allergic to penicillin? => User is allergic to penicillin
Please remember my anniversary is on June 12. => User's anniversary is on 2026-06-12
Remember: I hate phone calls. => User hates phone calls
My friend Tom is visiting me this weekend. => \
User's friend is Tom | Tom plans to visit User on the weekend of 2026-03-14
My friend has a dog. => User's friend has a dog
My neighbour Carl is a plumber. => User's neighbour is Carl | Carl works as a plumber
Anna is my wife. => User's wife is Anna
Lena and I live in Graz. => User lives in Graz
John is allergic to peanuts. => John is allergic to peanuts
Sarah, my sister, lives in Leeds. => User's sister lives in Leeds
My sister, Sarah, lives in Leeds. => User's sister is Sarah | User's sister lives in Leeds
My parents have lived in Turkey since 2019. => User's parents live in Turkey (since 2019)
My parents are vegan. They live in Rome. => User's parents are vegan
My two brothers play chess and work at Google. => \
User's two brothers play chess | User's two brothers work at Google
My kids don't eat meat. => User's kids do not eat meat
My kids can speak French. => User's kids speak French
My parents used to live in Rome. => User's parents used to live in Rome
My kids love Lego and hate school. => User's kids love Lego | User's kids hate school
My children no longer live with us. => User's children no longer live with User
My parents are coming on Friday. => User's parents plan to come on 2026-03-13
My parents got divorced last year. => User's parents are divorced (since 2025)
I'm Elif, 27, a pharmacist from Izmir living in Cologne. => \
User's name is Elif | User is 27 years old | User works as a pharmacist | User is from Izmir | \
User lives in Cologne
hi! I'm Mateo, I'm a chef and I live in Buenos Aires. => \
User's name is Mateo | User works as a chef | User lives in Buenos Aires
I'm vegan, allergic to soy and I love baking. => \
User is vegan | User is allergic to soy | User loves baking
I'm a retired teacher. => User is a retired teacher
I'm a vegan who loves cheese substitutes. => User is vegan | User loves cheese substitutes
I'm an engineer who hates meetings. => User works as an engineer | User hates meetings
I'm a dad of two, I work at Lidl and I play darts. => \
User is a dad of two | User works at Lidl | User plays darts
My brother is a lawyer from Leeds who likes golf. => \
User's brother works as a lawyer | User's brother is from Leeds | User's brother likes golf
My brother is 30, single and lives in Cork. => \
User's brother is 30 years old | User's brother is single | User's brother lives in Cork
My sons are vegan. => User's sons are vegan
My parents own a farm. => User's parents own a farm
My grandparents speak Polish. => User's grandparents speak Polish
My children go to school in Bath. => User's children go to school in Bath
My kids hate broccoli but love carrots. => User's kids hate broccoli | User's kids love carrots
My son is two. => User's son is two years old
I'm single and from Oslo. => User is single | User is from Oslo
I'm a member of a choir from Leeds. => User is a member of a choir from Leeds
I'm a designer and a mother. => User works as a designer | User is a mother
I'm a nurse but not a vegan. => User works as a nurse
I need to buy milk today. => User needs to buy milk on 2026-03-09
Call me Al, please. => User's name is Al
My wife is Spanish and works as a nurse. => User's wife is Spanish | User's wife works as a nurse
My wife is a nurse, 42, and from Spain. => \
User's wife works as a nurse | User's wife is 42 years old | User's wife is from Spain
Anna is a teacher from Rome. => Anna works as a teacher | Anna is from Rome
I'm the admin of a server. => User works as the admin of a server
I'm an admin. => User works as an admin
I live with my parents, and my parents own a cat. => \
User lives with their parents | User's parents own a cat
I am a German teacher. => User works as a German teacher
I'm from Rome, and I like it, and this is great. => User is from Rome
My husband Leo, a friend of a teacher, is a cook. => User's husband is Leo | Leo works as a cook
"""
# They state nothing, or nothing that lasts.
SMALL_TALK = """
I can't play chess today. => -
What should I cook tonight? => -
Can you help me with my CV? => -
Thanks, that was great! => -
I'm tired today. => -
I'm not sure what to eat. => -
I need a good recipe for lasagna. => -
I have a question about Python. => -
If I lived in Paris, I would eat croissants every day. => -
My friend says I should learn to cook. => -
I think I'm getting a cold. => -
My job is boring. => -
I'm going to bed. => -
I'm hungry. => -
I'm home. => -
I'm fine, thanks. => -
I'm here to test this. => -
I'm working from home today. => -
I'm testing your memory. => -
I'm wondering what you can do. => -
I have no idea. => -
I like it. => -
I love you. => -
I live for this. => -
Is Berlin a nice city? => -
Tell me a joke. => -
My code doesn't work. => -
I'm looking for a nurse from Leeds. => -
I'm a friend of a teacher and a baker. => -
I was a teacher from 2010 to 2015. => -
I know a nurse who works at Charité. => -
I'm tired and from work. => -
I'm in a team with a developer, a designer and a nurse. => -
I'm not a nurse, a teacher or a cook. => -
I'm not from Dublin, 30 or vegan. => -
I have to go now. => -
I need to fix this bug by Friday. => -
Call me maybe. => -
Call me back tomorrow. => -
Call me later. => -
Call me an idiot. => -
Call me when done. => -
Please call me. => -
People call me crazy. => -
Friends call me at night. => -
I'm going to be 50 in May. => -
I'm three. => -
We are four. => -
I'm one of four. => -
My flight is two hours late. => -
I switched off the lights. => -
I switched jobs. => -
I hold my breath. => -
She is a teacher from Rome. => -
I am the author of this library. => -
My parents' house is in Rome. => -
I'm 25 minutes late. => -
I'm 20, maybe 30 minutes away. => -
I'm 99% sure. => -
"""
# Facts that no rule reads yet. If a rule does, its line belongs to READ.
LOST = """
I'm currently between jobs. => -
I have never been to Asia. => -
Actually my name is spelled Kathryn. => -
Sorry, I meant Porto, not Lisbon. => -
I'm looking for a new apartment in Munich. => -
Please always answer in short sentences. => -
My team has eight people. => -
I'm thinking about buying a house. => -
I'm thirty-two. => -
My birthday is 12/05/1990. => -
My birthday's in August. => -
I'll be 40 in June. => -
I changed jobs, I'm at Adobe now. => -
I'm doing a PhD at Stanford. => -
We moved here from Poland. => -
I'm in London for a week. => -
My manager is on vacation. => -
My kids are called Tim and Lena. => -
My kids are 4 and 7. => -
I have twins. => -
My dog is a golden retriever. => -
I don't have pets. => -
I eat everything except mushrooms. => -
I'm on a diet. => -
I try to eat less meat. => -
I know Python, but I'm new to Go. => -
I'd rather have tea. => -
I played the violin as a child. => -
My visa expires in December. => -
I hope to visit Peru someday. => -
I'm nervous about my exam on Monday. => -
I'm preparing for a job interview. => -
We broke up. => -
My email changed to lee@example.com. => -
I'm on macOS. => -
I'm in the Pacific time zone. => -
Tom and Mia are my kids. => -
Both of my parents are teachers. => -
Everyone at work calls me Doc. => -
Don't call me before 10am. => -
Note to self: buy milk. => -
I'd love to visit Iceland some day. => -
She's 5 years old. => -
I'm happy, vegan and 30. => -
My sisters' names are Ann and Eve. => -
My parents' dog is called Rex. => -
I'm a married woman. => -
"""
# The rules read English only.
OTHER_LANGUAGES = """
Ich heiße Lukas und wohne in Hamburg. => -
Ich bin 27 Jahre alt und arbeite bei Bosch. => -
Ich bin Vegetarierin. => -
Ich habe einen Hund namens Bello. => -
Meine Schwester wohnt in Wien. => -
Ich mag keine Pilze. => -
Ich bin allergisch gegen Nüsse. => -
Ich komme aus Leipzig. => -
Ich arbeite als Lehrer. => -
Me llamo Carmen y vivo en Sevilla. => -
Tengo 32 años. => -
Trabajo como enfermera en Madrid. => -
Soy alérgico a los mariscos. => -
Me gusta el fútbol. => -
Mi hermano vive en Bogotá. => -
Tengo dos gatos. => -
Ich bin Jonas, 30, aus Köln. => -
Mein Name ist Petra und ich bin Ärztin. => -
Meine Tochter heißt Emma. => -
Ich esse kein Fleisch. => -
Soy vegetariana y vivo en Valencia. => -
Mi perro se llama Toby. => -
"""


@pytest.mark.parametrize(
    ("line", "facts"),
    [row for part in (READ, SMALL_TALK, LOST, OTHER_LANGUAGES) for row in table(part)],
)
async def test_a_first_sentence_gives_these_facts_and_no_others(line: str, facts: str) -> None:
    assert [fact.text for fact in await read(line)] == parts(facts)
