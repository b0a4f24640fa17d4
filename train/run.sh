#!/bin/sh
# Make the demo model from nothing: text, tokenizer, training, export, measurement.
# Leaves a Hugging Face folder in build/demo-hf; stop and start it again at will.
set -eu
cd "$(dirname "$0")/.."
if [ ! -x build/venv/bin/python ]; then
    python3 -m venv build/venv
fi
build/venv/bin/pip install --quiet --requirement train/requirements.txt
python=build/venv/bin/python
mkdir -p build/demo
$python train/questions.py tests/data/demo_questions.jsonl
[ -f build/demo/tokenizer.json ] || $python train/make_tokenizer.py build/demo/tokenizer.json
$python train/train.py --out build/demo
$python train/export.py build/demo build/demo-hf
$python train/evaluate.py --hf build/demo-hf
