"""The words of the minimal pairs: all of them common in the text that the shipped models are trained on."""

from __future__ import annotations

# singular, plural
PEOPLE = (
    ("boy", "boys"),
    ("girl", "girls"),
    ("man", "men"),
    ("woman", "women"),
    ("king", "kings"),
    ("child", "children"),
    ("brother", "brothers"),
    ("sister", "sisters"),
    ("friend", "friends"),
    ("farmer", "farmers"),
    ("soldier", "soldiers"),
    ("servant", "servants"),
    ("prince", "princes"),
    ("teacher", "teachers"),
    ("giant", "giants"),
    ("doctor", "doctors"),
)
MEN = (("boy", "boys"), ("man", "men"), ("king", "kings"), ("brother", "brothers"), ("son", "sons"))
WOMEN = (("girl", "girls"), ("woman", "women"), ("mother", "mothers"), ("sister", "sisters"), ("daughter", "daughters"))
THINGS = (
    ("house", "houses"),
    ("tree", "trees"),
    ("book", "books"),
    ("table", "tables"),
    ("garden", "gardens"),
    ("door", "doors"),
    ("window", "windows"),
    ("stone", "stones"),
    ("box", "boxes"),
    ("letter", "letters"),
    ("apple", "apples"),
    ("ship", "ships"),
    ("boat", "boats"),
    ("hat", "hats"),
    ("ring", "rings"),
    ("flower", "flowers"),
    ("knife", "knives"),
    ("cup", "cups"),
    ("bag", "bags"),
    ("picture", "pictures"),
    ("key", "keys"),
    ("chair", "chairs"),
)
MEN_NAMES = ("Tom", "John", "Jack", "Robert", "Peter", "George")
WOMEN_NAMES = ("Mary", "Alice", "Jane", "Anna", "Rose", "Kate")
ADJECTIVES = ("big", "small", "old", "good", "beautiful", "new", "white", "black", "red", "green", "little", "strange")
STATES = ("good", "old", "new", "beautiful", "strange", "small")  # what both a person and a thing may be
PLACES = ("near", "behind", "under", "beside", "with")
# past, participle
TRANSITIVE = (("saw", "seen"), ("took", "taken"), ("broke", "broken"), ("threw", "thrown"), ("wrote", "written"))
HANDLED = ("found", "took", "brought", "carried", "opened", "threw", "broke", "bought")  # by a person, a thing
SEEN = ("saw", "found", "heard", "brought", "carried")  # a person, a person
INTRANSITIVE = (("runs", "run"), ("sleeps", "sleep"), ("sings", "sing"), ("works", "work"), ("comes", "come"))
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "ten")
