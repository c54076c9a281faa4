"""Write the cases of this example: greedy questions, and texts in two languages."""

import json
from pathlib import Path

QUESTIONS = (
    ("What is the capital of France?", "Paris"),
    ("What is the capital of Italy? Answer in one short sentence.", "Rome"),
    ("What is the capital of Japan? Answer in one short sentence.", "Tokyo"),
    ("Which planet is closest to the sun?", "Mercury"),
    ("How many days does a week have?", "seven"),
    ("What colour do you get when you mix blue and yellow?", "green"),
    ("Which animal is known for its black and white stripes?", "zebra"),
    ("What do bees make?", "honey"),
    ("Repeat this sentence: The green kettle stands on the stove.", "green kettle"),
    ("Repeat this sentence: Seven small boats left the harbour.", "Seven small boats"),
    ("Repeat these words: copper, violin, winter, ladder.", "violin"),
    ("Name the ocean between Europe and North America.", "Atlantic"),
    ("What is the opposite of hot?", "cold"),
    ("What is the frozen form of water called?", "ice"),
    ("Write the numbers from 1 to 10.", "10"),
    ("Write one sentence about the sea.", "sea"),
    ("Write one sentence about a train journey.", "train"),
    ("Explain in one sentence why leaves are green.", "green"),
)
"""Question, and a text that a right answer contains."""

ENGLISH = (
    "The museum opens at nine in the morning and closes an hour after sunset. On the "
    "first Sunday of each month nobody has to pay, and the queue reaches the bridge.",
    "My grandfather repaired clocks for forty years. He used to say that a clock is "
    "never wrong on purpose, it only needs somebody who listens to it patiently.",
    "Heavy rain closed the mountain road for two days. The village was supplied by "
    "helicopter until a small team of engineers had cleared the fallen trees.",
    "To bake this bread, mix flour, water, salt and a little yeast. Let the dough rest "
    "overnight in a cool room, then bake it in a very hot oven for half an hour.",
    "The new tram line connects the harbour with the university. Every train carries "
    "two hundred people, and on weekdays one leaves every six minutes.",
    "Birds find their way over the ocean by the sun, the stars and the magnetic field "
    "of the earth. Young ones learn the last part of the route from older ones.",
    "The company reported lower sales in spring, mostly because one supplier could not "
    "deliver parts in time. It expects the second half of the year to be better.",
    "A good tool feels heavier than it is. The handle is warm in winter, the edge "
    "stays sharp for months, and nobody wants to lend it to a neighbour.",
    "In the old library the books are sorted by size and not by subject. Visitors who "
    "look for something have to ask, and they usually find more than they wanted.",
    "The children built a raft out of barrels and planks. It carried three of them "
    "across the pond before one barrel came loose and everyone got wet.",
    "Our neighbour plays the cello every evening at seven. When she is ill or away, "
    "the whole street notices that something is missing and asks about her.",
    "Water boils at a lower temperature high up in the mountains, so that potatoes "
    "need more time there. A lid on the pot helps, a better stove does not.",
    "The letter had been lying behind the drawer for thirty years. Its ink was still "
    "blue, the stamp showed a ship, and nobody knew the name of the sender.",
    "A marathon is decided in its last ten kilometres. Until then the fast and the "
    "careful run side by side, and nobody can tell which of them is which.",
    "The bakery on the corner sells its last loaves at half price after six. Students "
    "wait in front of it with open bags, and the baker knows most of them by name.",
    "Before the bridge was built, a ferry crossed the river four times a day. Its bell "
    "was so loud that the farmers on both sides set their clocks by it.",
)

CHINESE = (
    "图书馆每天早上八点开门，晚上十点关门。周末的时候，很多学生来这里看书、写作业，所以要早一点来才能找到座位。",
    "我爷爷年轻的时候是一名火车司机。他常常告诉我们，冬天的铁路最美，因为窗外到处都是白雪。",
    "昨天下了一场大雨，山路被冲坏了。村里的人一起动手，用了两天时间才把路修好。",
    "做这道菜并不难：先把豆腐切成小块，再放一点油和盐，最后用小火慢慢煮二十分钟。",
    "新的地铁线路连接了机场和市中心。早上上班的人很多，每隔四分钟就有一趟车。",
    "候鸟在秋天飞往南方，春天再飞回来。科学家发现，它们依靠太阳和星星来判断方向。",
    "这家公司今年的销售比去年好。经理说，原因是产品质量提高了，而且价格没有变。",
    "老师让每个学生写一篇关于家乡的文章。小明写的是河边的市场，那里每天都很热闹。",
    "孩子们在公园里放风筝。风太大了，有一只红色的风筝飞走了，大家看着它越来越小。",
    "医生建议他每天散步半个小时，少吃甜的东西，晚上早一点睡觉。一个月以后，他觉得身体好多了。",
    "这座桥是一百年前修建的。虽然现在已经不能通车了，但是还有很多人来这里照相。",
    "她学了三年钢琴，第一次在舞台上表演的时候非常紧张。表演结束以后，大家都为她鼓掌。",
    "高山上的水在比较低的温度就会沸腾，所以在那里煮饭需要更长的时间。",
    "邻居家的猫每天下午都坐在窗台上晒太阳。如果有人走过，它只是睁开一只眼睛看一看。",
    "市场里的水果很新鲜，苹果和橘子最便宜。下午六点以后，有些摊子还会降价。",
    "船慢慢地离开了港口，岸上的灯光越来越远。旅客们站在甲板上，谁也没有说话。",
)


def question(number: int, text: str, answer: str) -> dict:
    """A greedy question with log-probabilities, so that a divergence can be judged."""
    return {
        "id": f"question-{number:02d}",
        "class": "question",
        "messages": [{"role": "user", "content": text}],
        "parameters": {"max_tokens": 40, "logprobs": True, "top_logprobs": 8},
        "reference": [answer],
        "scorers": ["contains"],
    }


def text(number: int, language: str, words: str) -> dict:
    """A text whose own tokens are asked for; the first ones have no context."""
    begin = words.index(" ") + 1 if language == "en" else 2
    return {
        "id": f"text-{language}-{number:02d}",
        "class": "text",
        "tags": {"language": language},
        "prompt": words,
        "parameters": {"max_tokens": 1, "echo": True, "logprobs": 5},
        "reference": words[begin:],
        "scorers": ["reference_likelihood"],
    }


def main() -> None:
    """Write them beside this file."""
    cases = [question(i, *each) for i, each in enumerate(QUESTIONS)]
    for language, texts in (("en", ENGLISH), ("zh", CHINESE)):
        cases += [text(i, language, words) for i, words in enumerate(texts)]
    place = Path(__file__).parent / "cases.jsonl"
    lines = (json.dumps(case, ensure_ascii=False) for case in cases)
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
