#!/bin/sh
# Writes SESSIONS.db.gz: the log of sessions as the program in $1 writes it today. Later
# versions have to go on with them, see ../script/old-sessions.txtar. Run it with the
# program of a release; what there is already stays as it is.
#
#	./make.sh PROGRAM SESSIONS.db.gz
set -eu
program=$(realpath "$1") to=$(realpath "$2")
top=/tmp/w # it is in what is recorded
mkdir $top $top/home $top/garden $top/field
cd $top
cleanup() { kill $server 2>/dev/null || true; rm -rf $top; }
server=
trap cleanup EXIT
export HOME=$top/home XDG_CACHE_HOME= XDG_CONFIG_HOME= XDG_DATA_HOME= XDG_STATE_HOME= NO_COLOR=1

cat >garden/AGENTS.md <<'END'
# Garden

Write English. A list of plants is in plants.txt.
END
printf 'rose\ntulip\nTODO: order fern\n' >garden/plants.txt
printf 'keep\n' >garden/other.md
base64 -d >garden/red.png <<'END'
iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AAQQxwFgBB0gX7h/C5SAAAAABJRU5ErkJggg==
END
mkdir -p home/.config/stockade
cat >home/.config/stockade/agent.toml <<'END'
[model]
context_tokens = 20000
input_price = 1.0
output_price = 4.0
END

# serve MODEL answers with the lines that come, as a model of that name.
serve() {
	[ -z "$server" ] || kill $server
	cat >script.jsonl
	: >url
	"$program" -C field model serve --script script.jsonl >url &
	server=$!
	until [ -s url ]; do kill -0 $server && sleep 0.05; done
	OPENAI_BASE_URL=$(cat url) OPENAI_API_KEY=key STOCKADE_MODEL_NAME=$1 STOCKADE_MODEL_MAX_ATTEMPTS=2
	export OPENAI_BASE_URL OPENAI_API_KEY STOCKADE_MODEL_NAME STOCKADE_MODEL_MAX_ATTEMPTS
}

# A chat: an answer, a call, calls side by side, changes, what was undone, tasks, a
# command of the person, and the turn that was told of it.
serve scripted <<'END'
{"text":"It is a garden.","usage":{"input_tokens":1000,"output_tokens":20}}
{"text":"I look.","tool_calls":[{"id":"a","name":"file_read","arguments":{"path":"plants.txt"}}],"usage":{"input_tokens":1100,"output_tokens":30}}
{"tool_calls":[{"id":"a","name":"ls","arguments":{}},{"id":"b","name":"grep","arguments":{"pattern":"TODO"}},{"id":"c","name":"file_read","arguments":{"path":"nowhere.txt"}}],"usage":{"input_tokens":1200,"output_tokens":60}}
{"text":"One is to be ordered: fern.","usage":{"input_tokens":1500,"output_tokens":10}}
{"tool_calls":[{"id":"e","name":"add_task","arguments":{"content":"Order fern"}},{"id":"f","name":"add_task","arguments":{"content":"Plant it"}}]}
{"tool_calls":[{"id":"g","name":"file_edit","arguments":{"path":"plants.txt","old_string":"TODO: order fern","new_string":"fern"}},{"id":"h","name":"file_write","arguments":{"path":"new.md","content":"new\n"}}]}
{"tool_calls":[{"id":"i","name":"bash","arguments":{"command":"rm other.md"}},{"id":"j","name":"update_task","arguments":{"task_id":"task_1","status":"completed"}}]}
{"text":"Ordered."}
{"text":"I see that it is undone."}
END
printf '%s\n' 'What is here?' 'What is to be done?' 'Do it, all of it.' '/undo' '!echo by hand' 'And now?' '/quit' |
	"$program" -C garden chat --allow file_edit --allow file_write --allow "bash(command=rm other.md)"

# An image that a call returns, and one that the prompt names.
serve scripted-small <<'END'
{"tool_calls":[{"id":"a","name":"file_read","arguments":{"path":"red.png"}}]}
{"text":"It is red."}
END
"$program" -C garden run 'Which color has red.png?'
serve scripted-small <<'END'
{"text":"As red as the other one."}
END
"$program" -C garden session resume last 'And @red.png?'

# Calls that are denied, that nobody knows, and whose arguments are no JSON.
serve scripted <<'END'
{"tool_calls":[{"name":"file_write","arguments":{"path":"a","content":"b"}},{"name":"grep","arguments":{"pattern":"x"}}]}
{"tool_calls":[{"name":"glob","arguments":"{\"pattern\":"},{"name":"nothing","arguments":{}}]}
{"text":"Nothing of that could be done."}
END
"$program" -C garden run --deny grep 'Write a file.' </dev/null || [ $? = 7 ]

# An answer that broke off, one that was interrupted, and a call that a kill has ended.
serve scripted <<'END'
{"status":503,"error":{"message":"busy"}}
{"text":"The first half of an answer that breaks off, in the middle of its stream.","cut_after_bytes":600}
END
"$program" -C field run 'Say something.' || [ $? = 5 ]
serve scripted <<'END'
{"text":"The first half of","stall":true}
END
: >events
"$program" -C field run --json 'Say something long.' >events &
turn=$!
until grep -q '"type":"delta"' events; do sleep 0.05; done
kill -INT $turn
wait $turn || true
serve scripted <<'END'
{"tool_calls":[{"id":"a","name":"bash","arguments":{"command":"sleep 1000"}}]}
END
: >events
"$program" -C field run --json --allow bash 'Wait.' >events &
turn=$!
until grep -q '"type":"call.intended"' events; do sleep 0.05; done
kill -KILL $turn
wait $turn || true

# Calls of a person.
"$program" -C garden call grep pattern=rose

# What opened the log last has put all of it into the one file, but for what is open.
mv home/.local/share/stockade/sessions.db* .
if [ -s sessions.db-wal ]; then sqlite3 sessions.db 'PRAGMA wal_checkpoint(TRUNCATE)'; fi
gzip -9n <sessions.db >"$to"
