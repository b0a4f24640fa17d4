"""Little stories, made from a small grammar so that no two need be alike."""

from pathlib import Path

from .cards import Card, fill

HEROES = (Path(__file__).parent.parent / "data" / "heroes.txt").read_text().split()
PEOPLE = set("pirate princess prince king queen knight wizard witch giant farmer baker sailor gardener teacher doctor painter "
             "fisherman shepherd miller boy girl child grandmother dwarf mermaid".split())
HELPERS = ["an old owl", "a small mouse", "a kind farmer", "a patient turtle", "a bright robin", "a wise frog", "a young sailor",
           "a quiet gardener", "a friendly dog", "a gentle giant", "a clever crow", "a little girl"]
PLACES = ["in a green forest", "near a quiet lake", "on a high hill", "by the sea", "at the edge of a village", "in an old garden",
          "in a deep valley", "on a small island", "beside a slow river", "under a big oak"]
TRAITS = ["small", "curious", "brave", "shy", "clever", "cheerful", "lonely", "patient", "kind", "dreamy"]
LOST = ["a golden key", "a red scarf", "a silver bell", "a blue stone", "an old map", "a small lamp", "a wooden flute", "a letter"]
TROUBLE = [  # what happens, and how the two help
    ("a storm broke the old bridge", "They carried stones and branches until the evening, and the bridge was whole again."),
    ("the well ran dry", "They dug where the grass was green, and soon there was fresh water for all."),
    ("thick fog hid the path", "They sang together so that nobody lost the way, and soon all were at home."),
    ("the snow covered every road", "They cleared one road after the other, and everybody could visit everybody again."),
    ("the lights of the village went out", "They lit a hundred candles, and the village looked like a sky full of stars."),
    ("the river rose over its banks", "They built a little boat and brought everyone to dry land."),
    ("the wind blew the roof away", "They wove a new roof from reeds, and it was better than the old one."),
    ("a strange noise woke everybody", "They followed the noise and found a lost kitten, which was only hungry.")]
WISHES = ["to see the sea", "to learn to sing", "to touch a star", "to find a friend", "to read a book", "to see the snow",
          "to build a boat", "to bake a cake"]
ENDINGS = ["From that day on they were the best of friends.", "And that evening everybody slept well.",
           "Since then they have met every day.", "It was the best day of the year.", "And they laughed about it for a long time.",
           "And so a small heart did a big thing."]
FRAMES = ["tell me {a story|a little story|a short story|another story|a tale} about {a|the} $x", "{a|the} story about a $x", "story about a $x",
          "tell a story about a $x", "can you tell me a {|short }story about a $x", "write {a story|a short story|a little story} about a $x",
          "i want {a story|to hear a story} about a $x", "a story with a $x", "make up a story about a $x", "give me a story about a $x",
          "do you know a story about a $x", "i would like a story about a $x", "could you tell me a story about a $x",
          "tell me a bedtime story about a $x", "once upon a time there was a $x", "tell us about a $x in a story"]
ANY = ["tell me a story", "tell me {another|a short|a little|a nice|a new|one more|a bedtime} story", "a story", "story", "i want a story",
       "can you tell me a story", "can you tell stories", "write {a story|a short story|me a story}", "one more story", "tell a story", "another story",
       "make up a story", "i would like to hear a story", "do you know a story", "please tell a story", "give me a story", "read me a story",
       "tell my child a story", "tell us a story", "story time", "could you tell me a story", "tell me a tale", "tell me a fairy tale"]


def a(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def tell(hero, rng):
    """A story of four or five sentences with this hero."""
    pick = rng.choice
    who = "she" if hero in ("princess", "queen", "witch", "girl", "grandmother", "mermaid", "cow", "hen") else (
        "he" if hero in PEOPLE else "it")
    Who, helper = who.capitalize(), pick([h for h in HELPERS if not h.endswith(" " + hero)])
    the_helper, place = "the " + helper.split(" ", 1)[1], pick(PLACES)
    opening = pick(["Once there was {x} who lived {p}.", "Once upon a time {x} lived {p}.", "There was once {x} who lived {p}."])
    opening = opening.format(x=a(pick(TRAITS) + " " + hero), p=place)
    thing, (trouble, remedy), wish = pick(LOST), pick(TROUBLE), pick(WISHES)
    the_thing = "the " + thing.split(" ", 1)[1]
    plot = pick([
        f"One morning the {hero} found {thing} in the grass. {Who} asked everyone whose it was, but nobody knew. "
        f"At last {helper} began to smile, because {the_thing} had been lost for years.",
        f"One night {trouble}. The {hero} was afraid, but {who} went out and met {helper}. {remedy}",
        f"The {hero} had one wish: {wish}. {Who} walked for three days and met {helper} on the way. "
        f"\"Come with me,\" said {the_helper}, and before the sun went down the wish came true.",
        f"Every day the {hero} waited for a visitor, but nobody came. Then {helper} knocked at the door and asked for a cup of tea. "
        f"They talked until the stars came out.",
        f"One day {helper} had lost {thing} and was very sad. The {hero} looked under every leaf and behind every stone. "
        f"In the end {who} found {the_thing} and gave it back."])
    return f"{opening} {plot} {pick(ENDINGS)}"


def cards():
    about = [Card("stories", [q.replace(" a " + hero, " " + a(hero)) for q in fill(FRAMES, x=hero)],
                  lambda rng, hero=hero: tell(hero, rng), [hero],
                  f"The user wants a story about {a(hero)}. It needs a beginning, a small problem and a good end.", 0.3)
             for hero in HEROES]
    anything = Card("stories", fill(ANY), lambda rng: tell(rng.choice(HEROES), rng), ["Once"],
                    "The user wants a story. I choose a hero, a small problem and a good end.", 6.0)
    return about + [anything]
