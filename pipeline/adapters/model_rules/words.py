"""Word lists of the rules, as data, and forms of verbs. To teach the rules a word, add it here."""

from __future__ import annotations

import re

from pipeline.text.word_lists import IRREGULAR, words_of


def either(text: str) -> str:
    """A regex group that matches any of the comma-separated phrases of `text`."""
    phrases = sorted((p.strip() for p in text.split(",") if p.strip()), key=len, reverse=True)
    return "(?:" + "|".join(phrases) + ")"


# A capitalized word, and a name of up to three words.
CAP = r"(?-i:[A-Z\u00c0-\u00de])[\w'&.-]*"
NAME = rf"{CAP}(?: (?:(?:van|von|de|der|la|del|bin) )*{CAP}){{0,2}}"
COUNT = either("one, two, three, four, five, six, seven, eight, nine, ten, several, \\d\\d?")
# Words without meaning for a fact; they are removed before any pattern is tried.
ADVERBS = either(
    "really, also, just, actually, absolutely, totally, definitely, currently, now, still,"
    " recently, finally, honestly, personally, simply, kinda, kind of, sort of, quite, already,"
    " very much, sadly, luckily, especially, then"
)
# Words behind a negation that limit it: "not just a nurse", "does not live in Berlin alone".
LIMITS = either(
    "just, only, merely, quite, that, too, so, very, much, always, all, every, both, alone,"
    " together, well, enough, unless, except, without, instead, for fun, kind of, sort of, a lot,"
    " for now, right now, at the moment, yet, bad, severe, mild"
    ", (?!(?:family|jelly|belly|butterfly|fly|lily|italy|reply)\\b)(?-i:[a-z])[a-z]+ly"
)
# Words before a statement, also without a comma; such that need a pause; and words behind one.
OPENERS = either(
    "hi, hi there, hello, hello there, hey, hey there, good morning, good evening, good afternoon,"
    " well, so, oh, ok, okay, yes, yeah, yep, yup, no, nope, nah, thanks, thank you, also, and,"
    " but, btw, by the way, fyi, actually, honestly, anyway, um, uh, hmm, haha, lol, big news,"
    " great news, good news, bad news, quick update, a bit about me, about me, fun fact, as i said,"
    " as you know, to be honest, plus, wow, funny enough, unfortunately, sadly, luckily, because,"
    " then, just so you know, you know, sorry, in fact, please, ah, i mean, for the record,"
    " guess what, these days, nowadays, at the moment, right now, recently, currently, now,"
    " another thing, one more thing"
)
PAUSED = either("alright, cool, correction, great, listen, look, news, nice, note, right, sure")
CLOSERS = either(
    "too, as well, though, haha, lol, actually, btw, by the way, please, you know, now, currently,"
    " these days, nowadays, at the moment, right now, at all, so much, very much, a lot, i think,"
    " to be honest, i guess, by now, after all, in case you forgot, in case you wonder, at last,"
    " of course, for now, recently, either, instead, thanks, thank you, already, so far, lately,"
    " honestly, finally"
)
# Relatives of whom there is one at a time, so a new name replaces the old one.
SINGLE_KIN = words_of(
    "wife husband partner spouse girlfriend boyfriend fiancé fiancée mother father boss manager"
    " landlord therapist dentist doctor best_friend"
)
SHE = "sister wife mother mum mom ma daughter girlfriend aunt niece fiancée"
HE = "brother husband father dad pa son boyfriend uncle nephew fiancé"
ANYONE = (
    "partner spouse friend colleague coworker co-worker boss manager cousin neighbour neighbor"
    " roommate flatmate housemate teacher therapist doctor dentist landlord mentor coach child kid"
    " twin fiance fiancee teammate"
)
KIN = (
    "(?:(?:older|younger|elder|big|little|twin|best|oldest|youngest|old|new|close|late|ex) )*"
    rf"(?:step|grand)?{either(f'{SHE} {HE} {ANYONE}'.replace(' ', ','))}(?:-in-law)?"
)
PETS = either(
    "dog, cat, puppy, kitten, rabbit, bunny, hamster, guinea pig, parrot, budgie, horse, pony,"
    " tortoise, turtle, goldfish, fish, snake, lizard, gecko, ferret, canary, chicken, goat, hen"
)
VEHICLES = either("car, van, truck, motorcycle, motorbike, scooter, bike, bicycle, jeep, vw")
# Objects of "I have a ..." and "I lost my ..." that give no fact about the speaker.
NOT_HELD = words_of(
    "question questions problem problems issue issues idea feeling doubt doubts request error bug"
    " point suggestion suggestions minute thought thoughts task look time lot few chance favour"
    " favor hunch guess moment bit reason story update say choice go concern concerns couple sense"
    " clue dream plan plans opinion way while second follow-up blast mind temper patience interest"
    " appetite track count touch focus"
)
DIETS = either(
    "vegetarian, vegan, pescatarian, pescetarian, flexitarian, keto, gluten-free, dairy-free,"
    " kosher, halal, paleo, omnivore"
)
CONDITIONS = r"(?:type [12] )?" + either(
    "asthma, diabetes, adhd, migraine, migraines, epilepsy, arthritis, insomnia, anxiety,"
    " depression, dyslexia, autism, anaemia, anemia, eczema, psoriasis, hypertension,"
    " tinnitus, celiac, coeliac, endometriosis, scoliosis, vertigo, ibs, hypothyroidism, allergies"
)
# Nouns of "I'm a ..." that are jobs, and those that are none: written as "is a ...".
JOBS = either(
    "nurse, chef, cook, teacher, engineer, doctor, lawyer, pilot, judge, baker, barista, artist,"
    " actor, actress, accountant, architect, dentist, pharmacist, therapist, psychologist,"
    " journalist, analyst, consultant, scientist, researcher, professor, lecturer, waiter,"
    " waitress, bartender, mechanic, electrician, plumber, carpenter, paramedic, surgeon, vet,"
    " veterinarian, physician, librarian, translator, interpreter, editor, designer, developer,"
    " programmer, manager, director, ceo, cto, freelancer, secretary, receptionist, cashier,"
    " firefighter, soldier, sailor, captain, farmer, gardener, florist, tailor, butcher, driver,"
    " courier, assistant, intern, apprentice, coach, trainer, tutor, midwife, carer, nanny, guard,"
    " cleaner, officer, diplomat, politician, economist, statistician, mathematician, physicist,"
    " chemist, biologist, geologist, philosopher, historian, musician, violinist, pianist, drummer,"
    " singer, songwriter, dancer, photographer, filmmaker, producer, model, writer, author, poet,"
    " novelist, copywriter, technician, administrator, recruiter, broker, banker, trader, investor,"
    " entrepreneur, founder, physiotherapist, surveyor, welder, fisherman, paralegal, lead, admin"
)
BEINGS = either(
    "student, runner, swimmer, cyclist, gamer, reader, hiker, climber, beginner, mother, father,"
    " parent, mum, mom, dad, grandmother, grandfather, grandparent, twin, widow, widower, smoker,"
    " drinker, homeowner, veteran, citizen, resident, member, survivor, volunteer, owner, person,"
    " candidate, collector, beekeeper"
)
# Other words behind "I am" that are facts, and capitalized ones that are no names: "I'm OK".
TRAITS = either(
    "left-handed, right-handed, colour-blind, colourblind, deaf, blind, pregnant, introverted,"
    " extroverted, bilingual, self-employed, lactose intolerant, gluten intolerant, diabetic,"
    " dyslexic, autistic, asthmatic, celiac, coeliac, shy, short-sighted, an only child,"
    " an? \\w+vert, a night owl, an early bird, Jewish, Muslim, Christian, Hindu, Buddhist,"
    " Catholic, Sikh, an atheist, atheist, agnostic, a non-smoker, an expat"
)
NOT_NAMES = either(
    "ok, okay, fine, sorry, ready, back, done, happy, sad, tired, sure, good, great, busy, sick,"
    " bored, lost, home, here, excited, glad, confused, stuck, afraid, hungry, not, i, yes, no"
)
# Foods: objects of `likes` and `allergic_to` that are entities of the kind food in the graph.
FOODS = words_of(
    "pizza pasta sushi chocolate coffee tea wine beer cheese bread rice meat fish chicken beef pork"
    " salad soup curry ramen tacos noodles peanuts nuts shellfish eggs milk gluten soy apples"
    " bananas mushrooms olives coriander cake seafood tofu food"
)
LANGUAGES = either(
    "bulgarian, chinese, croatian, czech, danish, dutch, english, estonian, filipino, finnish,"
    " french, georgian, german, greek, hungarian, icelandic, indonesian, irish, italian, japanese,"
    " korean, latvian, lithuanian, nepali, norwegian, polish, portuguese, romanian, russian,"
    " serbian, slovak, slovenian, spanish, swedish, thai, turkish, ukrainian, vietnamese, welsh,"
    " arabic, bengali, cantonese, catalan, esperanto, farsi, gaelic, gujarati, hebrew, hindi,"
    " latin, malay, mandarin, marathi, persian, punjabi, somali, swahili, tagalog, tamil, urdu"
)
NATIONALITY = either(
    "american, argentinian, australian, austrian, bangladeshi, belgian, brazilian, british,"
    " canadian, chilean, colombian, cuban, egyptian, ethiopian, ghanaian, indian, iranian, iraqi,"
    " israeli, jamaican, kenyan, lebanese, malaysian, mexican, moroccan, nigerian, pakistani,"
    f" peruvian, scottish, singaporean, swiss, syrian, taiwanese, tunisian, {LANGUAGES}"
)
NO_NAME = rf"(?:{NATIONALITY}|{TRAITS}|{DIETS}|{NOT_NAMES})"
ATTRIBUTES = either(
    "surname, nickname, first name, last name, middle name, maiden name, email, email address,"
    " phone number, address, hometown, native language, mother tongue, first language, hobby,"
    " hobbies, goal, main goal, dream job, star sign, zodiac sign, height, weight, time zone,"
    " timezone, blood type, shoe size, car, job, job title, profession, occupation, pronouns,"
    " budget, company, employer, website, major, dream, biggest fear, password hint"
)
# Verbs of habits, in the third person, also of others with a word of frequency.
OFTEN = either("usually, often, always, sometimes, rarely, seldom, generally, mostly")
REGULAR = either("eats, drinks, plays, smokes, speaks, studies, works, drives, has")
HABITS = either(
    "teaches, volunteers, runs, swims, cooks, bakes, collects, writes, paints, sings, dances,"
    " travels, commutes, cycles, meditates, trains, practises, practices, wears, uses, watches,"
    " reads, listens, follows, supports, manages, leads, coaches, grows, raises, keeps, rides,"
    " avoids, suffers, takes, draws, knits, sews, hikes, climbs, jogs, surfs, skis, sails, fishes,"
    " camps, gardens, wakes, attends, walks, exercises, goes, celebrates, codes, programs, brews,"
    " photographs, donates, babysits, fosters, rents, shares, sleeps, fasts"
)
# Past verbs that give a fact without a date, and past verbs that give none.
LIFE_EVENTS = words_of(
    "graduated visited won adopted divorced published climbed completed founded emigrated"
    " immigrated inherited enrolled donated joined earned qualified ran dropped cancelled canceled"
    " passed lived worked studied served volunteered met"
)
CHATTER = words_of(
    "wanted needed asked tried mentioned thought noticed wondered forgot said told meant guessed"
    " hoped wished liked supposed clicked typed pressed heard knew felt seemed happened understood"
    " remembered planned decided intended was were used got"
)
# Pairs that are one thing, and allergens that are singular before "allergy".
PAIRS = either(
    "fish and chips, rock and roll, mac and cheese, salt and pepper, salt and vinegar, ham and"
    " cheese, bread and butter, bed and breakfast, drum and bass, arts and crafts, black and white"
)
COUNTABLE = words_of("peanut nut egg cat dog walnut almond hazelnut cashew prawn bee wasp")
# Verb forms, as far as the rules need them: "live" to "lives", "flying" to "fly".
PAST = words_of("was were did had quit learnt") | IRREGULAR.keys() - words_of("children people")
# Verbs that end in -ed but are not past forms, and verbs without another form.
NOT_PAST = words_of("need feed breed speed exceed succeed proceed seed")
UNCHANGED = words_of(
    "can cannot could will would should might may must used is has does no a the not"
)
THIRD = {"have": "has", "do": "does", "am": "is", "are": "is", "be": "is", "were": "was"}
# Stems before -ing that lose an e: of one syllable, such as "mov", and by their endings.
SILENT_E = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]|.*(?:[^eo]at|[cuv]|is|iz|[^aeioul]l)")
DOUBLED = re.compile(r"([bdgmnprt])\1$|(?<=trave)ll$")


def is_past(verb: str) -> bool:
    """True if `verb` is a past form, by the list or by -ed."""
    low = verb.lower()
    return low in PAST or (low.endswith("ed") and low not in NOT_PAST and len(low) > 3)


def third(verb: str) -> str:
    """The third person singular of a base verb; past forms and modals are unchanged."""
    low = verb.lower()
    if low in THIRD or low in UNCHANGED or is_past(low):
        return THIRD.get(low, low)
    if low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def base_of_gerund(gerund: str) -> str:
    """The base of an -ing form: `flying` to `fly`, `running` to `run`, `moving` to `move`."""
    stem = gerund.lower().removesuffix("ing")
    return stem[:-1] if DOUBLED.search(stem) else stem + "e" * bool(SILENT_E.fullmatch(stem))


def in_third_person(predicate: str) -> str:
    """A first-person predicate in the third person: "usually goes climbing", "does not eat"."""
    before = re.match(rf"(?:(?:{OFTEN}|never|no longer) )?", predicate, re.IGNORECASE)
    often = before[0] if before else ""
    head, _, rest = predicate[len(often) :].partition(" ")
    return f"{often.lower()}{third(head)} {rest}".strip()
