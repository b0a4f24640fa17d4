"""Cards about the world: capitals, colours, opposites, days and months."""

from pathlib import Path

from .cards import Card, fill, some

DATA = Path(__file__).parent.parent / "data"

CAPITAL = [
    "what is the capital of $x", "what's the capital of $x", "capital of $x", "the capital of $x",
    "which city is the capital of $x", "tell me the capital of $x", "name the capital of $x", "$x capital",
    "what is $x's capital", "do you know the capital of $x", "what is the capital city of $x",
    "give me the capital of $x", "can you tell me the capital of $x", "i want to know the capital of $x",
    "which city is the capital city of $x", "could you tell me what the capital of $x is", "$x's capital",
    "do you know what the capital of $x is", "which is the capital of $x", "remind me of the capital of $x",
    "what city is the capital of $x", "i need the capital of $x", "say the capital of $x",
    "what is the name of the capital of $x", "what is the capital of the country $x", "capital city of $x",
    "in $x, what is the capital", "what do you call the capital of $x", "how is the capital of $x called"]
COUNTRY = [
    "which country has the capital $x", "$x is the capital of which country", "what country is $x the capital of",
    "of which country is $x the capital", "$x is the capital of what", "which country's capital is $x",
    "what country has $x as its capital", "which country has $x as its capital", "$x is the capital of",
    "tell me the country whose capital is $x", "which country has the capital city $x", "where is $x",
    "which country is $x the capital of", "$x is the capital of what country", "what country is $x in",
    "in which country is $x", "name the country with the capital $x", "for which country is $x the capital"]
ALIASES = {"the United States": ["the usa", "the us", "america", "the united states of america"],
           "the United Kingdom": ["the uk", "great britain", "england"], "the Netherlands": ["holland"],
           "the United Arab Emirates": ["the uae"], "the Czech Republic": ["czechia"], "Myanmar": ["burma"]}
COLOUR = [
    "what {colour|color} is $x", "which {colour|color} is $x", "what is the {colour|color} of $x",
    "{colour|color} of $x", "tell me the {colour|color} of $x", "what {colour|color} does $x have",
    "which {colour|color} does $x have", "do you know the {colour|color} of $x", "the {colour|color} of $x is",
    "what's the {colour|color} of $x", "can you tell me what {colour|color} $x is", "$x {colour|color}"]
COLOURS = [
    "what {colour|color} are $x", "which {colour|color} are $x", "what is the {colour|color} of $x",
    "what {colour|color} do $x have", "tell me what {colour|color} $x are"]
OPPOSITE = [
    "what is the opposite of $x", "what's the opposite of $x", "opposite of $x", "the opposite of $x",
    "tell me the opposite of $x", "give me the opposite of $x", "name the opposite of $x", "$x opposite",
    "which word is the opposite of $x", "do you know the opposite of $x", "what is the antonym of $x",
    "what word means the opposite of $x", "can you tell me the opposite of $x", "what is the contrary of $x",
    "the opposite of $x is", "what is not $x but the opposite", "the opposite of the word $x"]
MIX = [("blue", "yellow", "green"), ("red", "yellow", "orange"), ("red", "blue", "purple"),
       ("red", "white", "pink"), ("black", "white", "grey")]
DAYS_IN = {"January": 31, "March": 31, "April": 30, "May": 31, "June": 30, "July": 31, "August": 31,
           "September": 30, "October": 31, "November": 30, "December": 31}


def pairs(name):
    return [line.split("|") for line in (DATA / name).read_text().splitlines()]


def upper_first(text):
    return text[0].upper() + text[1:]


def capitals():
    table = pairs("capitals.txt")
    for country, city in table:
        names = [country.lower()] + ALIASES.get(country, [])
        if country.startswith("the "):
            names.append(country[4:].lower())
        answer = f"The capital of {country} is {city}."
        yield Card("capitals", [q for n in names for q in fill(CAPITAL, x=n)], [answer], [city],
                   f"The user asks for the capital of {country}. I know this one: it is {city}.")
        if city not in ("Monaco", "Singapore"):
            yield Card("countries", fill(COUNTRY, x=city.lower()), [f"{city} is the capital of {country}."],
                       [country.removeprefix("the ")],
                       f"The user asks which country {city} belongs to. It is the capital of {country}.", 0.8)
        yield Card("capitals", fill(["is $c the capital of $x", "$c is the capital of $x, right",
                                     "is the capital of $x $c", "is it true that $c is the capital of $x"],
                                    c=city.lower(), x=country.lower()),
                   [f"Yes, {city} is the capital of {country}."], ["Yes"],
                   f"The capital of {country} is {city}, so the answer is yes.", 0.25)
        for _, other in some([p for p in table if p[1] != city], 6, country):
            yield Card("capitals", fill(["is $c the capital of $x", "$c is the capital of $x, right",
                                         "is the capital of $x $c"], c=other.lower(), x=country.lower()),
                       [f"No, the capital of {country} is {city}."], [city],
                       f"The capital of {country} is {city}, not {other}, so the answer is no.", 0.05)


def plural(noun):
    word = noun.split(" ", 1)[1]
    return word[:-1] + "ies" if word.endswith("ry") else word + "s"


def colours():
    for thing, colour in pairs("colours.txt"):
        bare = thing.split(" ", 1)[1] if thing.startswith(("a ", "an ", "the ")) else thing
        names = [thing] if bare == thing else [thing, bare]
        questions = [q for n in names for q in fill(COLOUR, x=n)]
        if thing.startswith(("a ", "an ")):
            questions += fill(COLOURS, x=plural(thing))
        questions += fill(["is $x $c"], x=thing, c=colour)
        yield Card("colours", questions, [f"{upper_first(thing)} is {colour}."], [colour],
                   f"I think of {thing}. It is usually {colour}.")
    for a, b, mixed in MIX:
        yield Card("colours", fill(["what {colour|color} do $a and $b make", "what do you get when you mix $a and $b",
                                    "mix $a and $b", "$a and $b make which {colour|color}", "$a plus $b {colour|color}",
                                    "what is $a mixed with $b"], a=a, b=b)
                   + fill(["what {colour|color} do $b and $a make", "what do you get if you mix $b and $a"], a=a, b=b),
                   [f"{upper_first(a)} and {b} make {mixed}."], [mixed], f"I mix {a} and {b} in my head: {mixed}.")


def opposites():
    table = {}
    for a, b in pairs("opposites.txt"):
        table.setdefault(a, b)
        table.setdefault(b, a)
    for a, b in table.items():
        yield Card("opposites", fill(OPPOSITE, x=a), [f"The opposite of {a} is {b}."], [b],
                   f"The user wants the opposite of {a}. The word is {b}.")


def order():
    for kind, line in zip(("day", "month"), (DATA / "sequences.txt").read_text().splitlines()):
        names = line.split()
        for here, after in zip(names, names[1:] + names[:1]):
            after_text, before_text = f"{after} comes after {here}.", f"{here} comes before {after}."
            yield Card("order", fill([f"{{what|which}} {kind} {{comes|is}} after $x", f"what {kind} follows $x",
                                      f"{{what|which}} is the {kind} after $x", "what comes after $x",
                                      f"name the {kind} after $x", f"the {kind} after $x", f"next {kind} after $x"],
                                     x=here.lower()),
                       [after_text], [after], f"The {kind} order goes {here}, {after}. So it is {after}.")
            yield Card("order", fill([f"{{what|which}} {kind} {{comes|is}} before $x", "what comes before $x",
                                      f"{{what|which}} is the {kind} before $x", f"name the {kind} before $x",
                                      f"the {kind} before $x", f"what {kind} precedes $x"], x=after.lower()),
                       [before_text], [here], f"The {kind} order goes {here}, {after}. So it is {here}.")
    days, months = (line.split() for line in (DATA / "sequences.txt").read_text().splitlines())
    for number, month in zip("first second third fourth fifth sixth seventh eighth ninth tenth eleventh last".split(), months):
        yield Card("order", fill(["what is the $n month{| of the year}", "which month is the $n{| of the year}",
                                  "name the $n month", "the $n month of the year"], n=number),
                   [f"The {number} month of the year is {month}."], [month],
                   f"I count the months. The {number} one is {month}.", 0.5)
    for month, count in DAYS_IN.items():
        yield Card("order", fill(["how many days {has|are in|does} $m{| have}", "how long is $m", "days in $m",
                                  "how many days are there in $m", "number of days in $m"], m=month.lower()),
                   [f"{month} has {count} days."], [str(count)], f"I remember that {month} has {count} days.", 0.5)
    lists = [("{list|name|tell me|what are|give me|say} {the|all} days{| of the week}", "The days of the week are " + listing(days)),
             ("{list|name|tell me|what are|give me|say} {the|all} months{| of the year}", "The months of the year are " + listing(months)),
             ("how many days {are in|has|does} a week{| have}", "A week has 7 days."),
             ("how many months {are in|has|does} a year{| have}", "A year has 12 months."),
             ("how many days {are in|has|does} a year{| have}", "A year has 365 days, and a leap year has 366."),
             ("how many days {are in|has|does} february{| have}", "February has 28 days, and 29 in a leap year."),
             ("how many hours {are in|has|does} a day{| have}", "A day has 24 hours."),
             ("how many minutes {are in|has|does} an hour{| have}", "An hour has 60 minutes."),
             ("how many seconds {are in|has|does} a minute{| have}", "A minute has 60 seconds."),
             ("{count to|count up to|can you count to|count from one to} {ten|10}", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10."),
             ("{say|list|what is|what are the letters of|tell me|recite} the alphabet", "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z."),
             ("{what are|list|name|tell me} the {four |}seasons", "The seasons are spring, summer, autumn and winter.")]
    for pattern, answer in lists:
        yield Card("order", fill([pattern]), [answer], [answer.rstrip(".")], "I know this list well, so I simply say it.")


def listing(words):
    return ", ".join(words[:-1]) + " and " + words[-1] + "."


def cards():
    return [*capitals(), *colours(), *opposites(), *order()]
