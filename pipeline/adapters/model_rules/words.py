"""Word lists of the rules, as data. To teach the rules a word, add it here.

Every list is a regex alternation (`A|B|C`) or a frozenset of lower-case words.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The whitespace-separated words of `text` as a set."""
    return frozenset(text.split())


def either(text: str) -> str:
    """A regex group that matches any of the comma-separated phrases of `text`."""
    phrases = sorted((p.strip() for p in text.split(",") if p.strip()), key=len, reverse=True)
    return "(?:" + "|".join(phrases) + ")"


# Words without meaning for a fact; they are removed before any pattern is tried.
ADVERBS = either(
    "really, also, just, actually, absolutely, totally, definitely, currently, now, still,"
    " recently, finally, honestly, personally, basically, simply, truly, kinda, kind of, sort of,"
    " quite, already, very much, probably the one who, genuinely, certainly, sadly, unfortunately,"
    " luckily, happily, officially, presently"
)
FREQUENCY = words("usually often always sometimes rarely seldom never generally mostly")

# Words before a statement: "Hi there, well, by the way I ...".
OPENERS = either(
    "hi, hi there, hello, hello there, hey, hey there, good morning, good evening, good"
    " afternoon, well, so, oh, ok, okay, yes, yeah, yep, yup, no, nope, nah, thanks, thank you,"
    " also, and, but, btw, by the way, fyi, actually, honestly, anyway, um, uh, hmm, haha, lol,"
    " big news, great news, exciting news, some news, quick update, small update, a bit about me,"
    " about me, as i said, as you know, to be honest, plus, oh no, good news, bad news, wow, funny"
    " enough, unfortunately, sadly, luckily, because, then, just so you know, you know, sorry, in"
    " fact, please, ah, oh yes, oh yeah, i mean, for your information, for the record, guess what,"
    " not sure if i mentioned it, these days, nowadays, at the moment, right now, recently,"
    " currently, now, one more thing, one thing, another thing"
)
# Openers only before a pause: "Nice, ..." but not "Nice is my favourite city".
PAUSED = either(
    "alright, cool, correction, great, listen, look, news, nice, note, right, sure, update"
)
# Words after a statement: "... too, haha".
CLOSERS = either(
    "too, as well, though, haha, lol, actually, btw, by the way, please, you know, now,"
    " currently, these days, nowadays, at the moment, right now, at all, so much, very much, a"
    " lot, to be honest, i think, i guess, of course, for now, recently, either, thanks, thank"
    " you, by now, already, after all, in case you forgot, in"
    " case you wonder, instead, if i remember correctly, so far, lately, honestly, at last,"
    " finally"
)

COUNT = either("one, two, three, four, five, six, seven, eight, nine, ten, several, \\d\\d?")

# Relatives of whom there is one at a time, so a new name replaces the old one.
SINGLE_KIN = words(
    "wife husband partner spouse girlfriend boyfriend fiancé fiancée fiance fiancee mother father"
    " mum mom dad boss manager landlord therapist dentist doctor"
)
SHE = words(
    "sister wife mother mum mom daughter girlfriend aunt grandmother grandma niece fiancée"
    " stepmother stepsister granddaughter mother-in-law sister-in-law"
)
HE = words(
    "brother husband father dad son boyfriend uncle grandfather grandpa nephew fiancé stepfather"
    " stepbrother grandson father-in-law brother-in-law"
)
ANYONE = words(
    "partner spouse friend colleague coworker co-worker boss manager cousin neighbour neighbor"
    " roommate flatmate housemate teacher therapist doctor dentist landlord mentor coach child"
    " baby kid twin fiance fiancee teammate"
)
KIN = either(",".join((SHE | HE | ANYONE) - {"baby"}))
KIN_SHADE = either(
    "older, younger, elder, big, little, twin, best, old, eldest, oldest, youngest, new, close,"
    " late, ex, former, dear, good, only"
)
PETS = either(
    "dog, cat, puppy, kitten, rabbit, bunny, hamster, guinea pig, parrot, budgie, horse, pony,"
    " tortoise, turtle, goldfish, fish, snake, lizard, gecko, ferret, canary, chicken, goat, rat"
)
VEHICLES = words(
    "car van truck motorcycle motorbike scooter bike bicycle tesla toyota honda ford bmw audi"
    " volkswagen vw mercedes volvo porsche fiat renault peugeot skoda kia hyundai mazda nissan"
    " jeep"
)

# Objects of "I have a ..." that give no fact about the speaker.
NOT_HELD = words(
    "question questions problem problems issue issues idea feeling doubt doubts request error bug"
    " point suggestion suggestions minute thought thoughts task look time lot few chance favour"
    " favor hunch guess moment bit reason story update say choice go concern concerns couple sense"
    " clue dream plan plans opinion way point while second follow-up blast"
)
NOT_LOST = words("mind way temper patience interest appetite track count weight hope touch focus")

TRAITS = either(
    "left-handed, right-handed, colour-blind, colourblind, color-blind, deaf, blind, pregnant,"
    " introverted, extroverted, bilingual, self-employed, lactose intolerant, gluten intolerant,"
    " diabetic, dyslexic, autistic, asthmatic, celiac, coeliac, shy, short-sighted, near-sighted,"
    " an introvert, an extrovert, an only child, a morning person, a night owl, an early bird, a"
    " night person, a dog person, a cat person, a people person, Jewish, Muslim, Christian, Hindu,"
    " Buddhist, Catholic, Sikh, an atheist, atheist, agnostic, a non-smoker, an expat"
)
DIETS = either(
    "vegetarian, vegan, pescatarian, pescetarian, flexitarian, keto, gluten-free, dairy-free,"
    " kosher, halal, paleo, omnivore"
)
CONDITIONS = words(
    "asthma diabetes adhd migraine migraines epilepsy arthritis insomnia anxiety depression"
    " dyslexia autism anaemia anemia eczema psoriasis hypertension tinnitus celiac coeliac"
    " endometriosis scoliosis vertigo ibs hypothyroidism allergies"
)
# Adjectives of countries that are names of their languages too.
_OF_COUNTRY_AND_LANGUAGE = words(
    "bulgarian chinese croatian czech danish dutch english estonian filipino finnish french"
    " georgian german greek hungarian icelandic indonesian irish italian japanese korean latvian"
    " lithuanian nepali norwegian polish portuguese romanian russian serbian slovak slovenian"
    " spanish swedish thai turkish ukrainian vietnamese welsh"
)
NATIONALITIES = _OF_COUNTRY_AND_LANGUAGE | words(
    "american argentinian australian austrian bangladeshi belgian brazilian british canadian"
    " chilean colombian cuban egyptian ethiopian ghanaian indian iranian iraqi israeli jamaican"
    " kenyan lebanese malaysian mexican moroccan nigerian pakistani peruvian scottish singaporean"
    " swiss syrian taiwanese tunisian"
)
LANGUAGES = _OF_COUNTRY_AND_LANGUAGE | words(
    "arabic bengali cantonese catalan esperanto farsi gaelic gujarati hebrew hindi latin malay"
    " mandarin marathi persian punjabi somali swahili tagalog tamil telugu urdu yoruba zulu"
)

# Nouns of "I'm a ..." that are jobs, in addition to the endings below.
JOBS = words(
    "nurse chef cook teacher engineer doctor lawyer pilot judge baker barista artist actor"
    " actress accountant architect dentist pharmacist therapist psychologist journalist analyst"
    " consultant scientist researcher professor lecturer waiter waitress bartender mechanic"
    " electrician plumber carpenter paramedic surgeon vet veterinarian physician librarian"
    " translator interpreter editor designer developer programmer manager director ceo cto"
    " freelancer secretary receptionist cashier salesman saleswoman firefighter policeman"
    " policewoman soldier sailor captain farmer gardener florist tailor butcher driver courier"
    " attendant assistant intern apprentice coach trainer tutor midwife carer caregiver nanny"
    " janitor cleaner guard officer diplomat politician economist statistician mathematician"
    " physicist chemist biologist geologist astronomer philosopher historian musician violinist"
    " pianist drummer singer songwriter dancer photographer filmmaker producer model writer author"
    " poet novelist copywriter technician administrator recruiter broker banker trader investor"
    " entrepreneur founder optician radiographer physiotherapist surveyor welder miner fisherman"
    " paralegal postdoc lead admin"
)
# Nouns that are not jobs: written as "is a ...".
BEINGS = either(
    "student, runner, swimmer, cyclist, gamer, reader, hiker, climber, beginner, mother, father,"
    " parent, mum, mom, dad, grandmother, grandfather, twin, widow, widower, smoker, drinker,"
    " homeowner, veteran, citizen, resident, member, survivor, grandparent, volunteer, owner,"
    " person, PhD candidate, PhD student, collector, beekeeper"
)

ATTRIBUTES = either(
    "name, full name, first name, last name, surname, nickname, email, email address, phone"
    " number, address, hometown, native language, mother tongue, first language, hobby, hobbies,"
    " goal, main goal, dream job, star sign, zodiac sign, height, weight, time zone, timezone,"
    " blood type, shoe size, car, job, job title, profession, occupation, pronouns, budget,"
    " company, employer, middle name, maiden name, birth name, website, major, dream, biggest"
    " fear, password hint"
)

# Allergens that are singular before "allergy".
COUNTABLE = words("peanut nut egg cat dog walnut almond hazelnut cashew prawn bee wasp")
# Verbs of habits, in base form.
HABITS = words(
    "teach volunteer run swim cook bake collect write paint play sing dance travel commute cycle"
    " meditate train practise practice study learn wear use drink smoke watch read listen follow"
    " support manage lead coach grow raise keep ride eat avoid suffer take draw knit sew hike"
    " climb jog surf ski sail fish camp garden meditate garden wake attend walk exercise go"
    " celebrate code program brew photograph donate babysit foster rent share sleep fast speak"
)
# Past verbs that give a fact without a date; the others need one.
LIFE_EVENTS = words(
    "graduated retired visited won adopted divorced published climbed completed founded emigrated"
    " immigrated inherited enrolled donated joined earned qualified ran dropped cancelled canceled"
    " passed lived worked studied served volunteered met"
)
# Past verbs about the conversation: never facts.
CHATTER = words(
    "wanted needed asked tried mentioned thought noticed wondered forgot said told meant guessed"
    " hoped wished liked supposed clicked typed pressed heard knew felt seemed happened understood"
    " remembered planned decided intended was were used got"
)
AIMS = either(
    "learn, visit, become, travel, move, start, run, write, buy, study, quit, lose, retire, open,"
    " get better at, improve, climb, adopt, see, go to, train for, save, build, get into, get fit"
)
# Pairs that are one thing, so they are not split into two.
PAIRS = words(
    "gin-tonic fish-chips rock-roll mac-cheese salt-pepper salt-vinegar bed-breakfast"
    " cookies-cream peanut-jelly dungeons-dragons drum-bass arts-crafts black-white bacon-eggs"
    " surf-turf tom-jerry simon-garfunkel pride-prejudice ham-cheese bread-butter science-fiction"
)
