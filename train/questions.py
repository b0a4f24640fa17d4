"""Write the held-out questions, one JSON object a line: question, accept, topic."""

import json
import sys
from pathlib import Path

from corpus.conversations import check_cards, held_out

if __name__ == "__main__":
    check_cards()
    rows = held_out()
    Path(sys.argv[1]).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(f"{len(rows)} held-out questions")
