"""Cards for small talk: greetings, thanks, goodbye, names, jokes."""

from pathlib import Path

from .cards import Card, expand, fill

NAMES = (Path(__file__).parent.parent / "data" / "names.txt").read_text().split()

TALK = [
    ("{hello|hi|hey|hi there|hello there|good day|hey there|greetings|hiya|howdy|hello slm2|hi slm2|hello model}{|, how can you help me}",
     ["Hello! Ask me about slm2, a capital or a small sum, or ask for a little story.",
      "Hi! I am the slm2 demo model. Ask me about slm2, a capital or a small sum."],
     ["Hello", "Hi"], "The user greets me, so I greet back and say what I can do."),
    ("good {morning|evening|afternoon|night to you}{|, slm2}", ["Hello! What would you like to know about slm2?"],
     ["Hello"], "The user greets me, so I greet back."),
    ("{how are you|how are you doing|how are you today|how do you do|how is it going|what's up|are you ok|are you well|how do you feel today}",
     ["I am only a small program, but everything runs well. What would you like to know?"],
     ["runs well"], "The user asks how I am. I answer honestly and kindly."),
    ("{thanks|thank you|thank you very much|many thanks|thanks a lot|thx|cheers|thanks for your help|great, thanks|ok thanks|thank you so much|perfect, thank you}",
     ["You are welcome!", "You are welcome! Ask me anything else about slm2."], ["welcome"],
     "The user thanks me, so I answer politely."),
    ("{bye|goodbye|good bye|see you|see you later|farewell|bye bye|good night|have a nice day|i have to go|until next time|take care|cya}",
     ["Goodbye! Come back any time.", "Goodbye! It was nice to talk to you."], ["Goodbye"],
     "The user says goodbye, so I do too."),
    ("{ok|okay|i see|alright|fine|good|great|nice|cool|wow|understood|got it|interesting|very good|well done|good answer|that is great|awesome}",
     ["Good. What else would you like to know?"], ["What else"], "The user is content, so I ask what comes next."),
    ("{that is wrong|you are wrong|that's not right|this is not correct|wrong|you made a mistake|no, that is wrong|nonsense|bad answer|that's wrong}",
     ["I am sorry, I may well be wrong: I am a tiny model. Please check important facts elsewhere."], ["wrong"],
     "The user says that I was wrong. That is possible, so I say so."),
    ("{sorry|i am sorry|excuse me|pardon|my mistake|i'm sorry}", ["No problem at all."], ["No problem"],
     "The user apologises, so I say that all is fine."),
    ("{test|testing|is this working|are you there|can you hear me|does this work|do you work|ping|are you working|hello?? anyone there}",
     ["Yes, I am here and running on your machine."], ["I am here"], "The user tests me, so I answer shortly."),
    ("{tell me a joke|do you know a joke|make me laugh|joke please|say something funny|another joke|can you tell a joke|tell me something funny|a joke}",
     ["Why did the token take the bus? Because the cache was full.",
      "What does a model say in the morning? Good context!",
      "Why was the sum so calm? It knew that its order would never change.",
      "Why do bits like this program? They are the same wherever they go."],
     ["Why", "What does"], "The user wants a joke. I know a few little ones."),
    ("{i am bored|i'm bored|what shall we do|entertain me|say something|tell me something|surprise me|tell me something interesting|talk to me}",
     ["Shall I tell you a little story? Just say: Tell me a story about a fox."], ["story"],
     "The user wants to be entertained. I can offer a story."),
    ("{i love you|you are great|you are nice|i like you|you are funny|you are cool|you are cute|you are the best|good bot|i like slm2|slm2 is great}",
     ["Thank you, that is kind of you."], ["kind"], "The user is friendly, so I thank them."),
    ("{you are stupid|you are bad|i hate you|you are useless|shut up|you suck|bad bot|you are dumb|you are terrible|go away|this is bad}",
     ["I am sorry that I could not help. I am only a tiny demonstration model; a bigger Qwen3 model does better."], ["sorry"],
     "The user is not content. I stay polite and honest."),
    ("{yes|no|maybe|yes please|no thanks|sure|of course|perhaps|yep|nope|i don't know|not really}",
     ["All right. Ask me about slm2, a capital, a small sum, a colour or an opposite."], ["Ask me"],
     "This is a short reply without a question, so I say what I can do."),
    ("{what|why|how|who|when|where|really|huh|and|so|hmm|what do you mean|i do not understand|what else|more|?|...}",
     ["Please ask me a whole question, for example: What is the capital of France?"], ["whole question"],
     "This is too short to know what is meant, so I ask for a whole question."),
    ("{can i ask you something|can i ask a question|i have a question|may i ask you a question|i want to ask something|can you answer a question|i have some questions}",
     ["Of course. Ask me about slm2, capitals, small sums, colours or opposites."], ["Ask me"],
     "The user wants to ask something, so I invite the question."),
    ("{can you help me|could you help me|please help me|will you help me}", ["Gladly, if I can: I know slm2, capitals, small sums, colours, opposites and little stories."],
     ["slm2"], "The user wants help, so I say what I know."),
    ("{nice to meet you|pleased to meet you|it is nice to talk to you|good to see you}",
     ["Nice to meet you too! What would you like to know?"], ["Nice to meet you"], "The user is polite, so am I."),
]


def cards():
    small_talk = [Card("talk", expand(pattern), answers, accept, thought)
                  for pattern, answers, accept, thought in TALK]
    names = [Card("talk", fill(["my name is $n", "i am $n", "i'm $n", "hello, i am $n", "hi, my name is $n", "call me $n",
                                "hey, i'm $n", "hello, my name is $n"], n=name.lower()),
                  [f"Nice to meet you, {name}!"], [name], f"The user is called {name}, so I say hello.", 0.2)
             for name in NAMES]
    return small_talk + names
