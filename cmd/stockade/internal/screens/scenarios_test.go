//go:build screens

package screens

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm/offline"
)

// scenario is a list of actions of a person, with the screens that are compared.
type scenario struct {
	name string
	play func(s *screen, looks func(name string))
}

// question is the row with the keys of a question.
const question = `\[y\]1`

// chats starts the chat.
func (s *screen) chats() {
	s.t.Helper()
	s.says("stockade chat")
	s.until(prompt)
}

// chooses answers a question that stands on the screen, once it has been there for a while,
// and waits until the screen matches a pattern.
func (s *screen) chooses(key, pattern string) {
	s.t.Helper()
	s.until(question)
	s.settles()
	s.presses(key)
	s.until(pattern)
}

// numbered is a text in which each row is numbered.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- %06d the goats are back\n", i)
	}
	return b.String()
}

var goats = regexp.MustCompile(`(\d{6}) the goats`)

// once fails unless each of so many numbered rows is in the scrollback once, in its
// place.
func (s *screen) once(n int) {
	s.t.Helper()
	next, before := 0, ""
	for row := range strings.Lines(s.scrollback()) {
		if m := goats.FindStringSubmatch(row); m != nil {
			if m[1] != fmt.Sprintf("%06d", next) {
				s.t.Fatalf("in the place of line %d is\n%safter\n%s", next, row, before)
			}
			next++
		}
		before += row
		before = before[max(len(before)-400, 0):]
	}
	if next != n {
		s.t.Fatalf("%d of %d lines are in the scrollback, which ends with\n%s", next, n, before)
	}
}

// scenarios are played at each size.
var scenarios = []scenario{{
	name: "turn",
	play: func(s *screen, looks func(string)) {
		s.answers(
			calls("", call("file_read", `{"path":"notes.md"}`)),
			calls("I correct it and look whether the notes pass.",
				edit("order new rope", "order a new rope")),
			calls("", edit("two goats", "Two goats")), calls("", edit("the path is mud", "the path is all mud"), bash("make test")),
			text("The notes are **corrected**.\n\n```sh\nmake test\n```\n\nTwo tasks are left."))
		s.chats()
		looks("first screen")
		s.says("correct the notes, then run the tests")
		s.until(question)
		looks("a question about an edit")
		s.settles()
		s.presses("?")
		looks("its details")
		s.settles()
		s.presses("y")
		s.until(`Two goats`)
		looks("the next question")
		s.chooses("3", `all mud`)
		s.chooses("s", `Two tasks are left`)
		s.until(prompt)
		looks("the end of the turn")
		if text := s.reads("notes.md"); !strings.Contains(text, "order a new rope") || strings.Contains(text, "Two goats") || !strings.Contains(text, "all mud") {
			s.t.Errorf("the notes are\n%s", text)
		}
		s.says("/show 2")
		looks("a call that is shown")
		s.says("/context")
		looks("the context")
		s.says("/undo")
		s.until(`undone`)
		looks("undone")
		if text := s.reads("notes.md"); strings.Contains(text, "a new rope") || strings.Contains(text, "all mud") {
			s.t.Errorf("after the undo the notes are\n%s", text)
		}
		s.answers(calls("", call("file_read", `{"path":"notes.md"}`)), calls("", edit("two goats", "Two goats")), text("Once more."))
		s.says("correct them again")
		s.until(`Once more`)
		s.writes("notes.md", "# Ada's own words\n")
		s.says("/undo")
		s.until(`(?s)/undo.*^> `)
		looks("an undo that is refused")
		if text := s.reads("notes.md"); !strings.HasPrefix(text, "# Ada") {
			s.t.Errorf("after the undo that is refused the notes are\n%s", text)
		}
	},
}, {
	name: "answers",
	play: func(s *screen, looks func(string)) {
		write := func(name string) openai.ToolCall {
			return call("file_write", fmt.Sprintf(`{"path":%q,"content":"hay\n"}`, name))
		}
		s.answers(
			calls("Two files.", write("one.md"), write("two.md")),
			calls("A check.", bash("echo checked; touch made"), write("three.md")),
			calls("As you say.", write("four.md"), bash("touch five.md")),
			text("All is done."))
		s.chats()
		s.says("write them")
		s.until(`two.md`)
		looks("edits of one reply are asked about together")
		s.chooses("y", `A check`)
		s.until(question)
		looks("a command that has run")
		s.chooses("x", `three.md`)
		s.until(question)
		s.settles()
		s.presses("r")
		s.until(`because: Enter sends`)
		s.types("write it in Welsh")
		looks("a reason for a no")
		s.presses("Enter")
		s.until(`four.md`)
		s.until(question)
		looks("a no to the rest")
		s.chooses("q", `All is done`)
		s.until(prompt)
		looks("what became of it")
		s.answers(calls("", bash("sleep 2")), text("It slept."))
		s.says("sleep")
		s.until(`sleep 2`)
		s.types("and dream")
		s.presses("Enter")
		s.until(`next step`)
		looks("words for the next step")
		s.until(`It slept`)
		s.until(prompt)
		looks("they were heard")
		s.says("/rewind")
		looks("the turns")
		s.says("/rewind 1")
		s.until(`Take back`)
		looks("what goes back")
		s.settles()
		s.presses("b")
		s.until(`the log keeps everything`)
		s.until(prompt)
		looks("it is taken back")
	},
}, {
	name: "queue",
	play: func(s *screen, looks func(string)) {
		s.answers(text(hold+"The first answer.\n\nIt has two "+hold+"paragraphs."), text("The second answer."))
		s.chats()
		s.says("think for a while")
		s.held()
		s.until(`waiting for the model, \d`)
		looks("the model thinks")
		s.types("and a second thing")
		looks("something is typed meanwhile")
		s.presses("Enter")
		s.until(`next step`)
		looks("it is queued")
		s.goesOn()
		s.held()
		s.until(`It has two`)
		looks("half an answer")
		s.goesOn()
		s.until(`The second answer`)
		s.until(prompt)
		looks("both are answered")
	},
}, {
	name: "interrupt",
	play: func(s *screen, looks func(string)) {
		s.answers(text("It begins here, "+hold+"and never ends."), calls("", bash("seq 1 20; sleep 60")))
		s.chats()
		s.says("tell me")
		s.held()
		s.until(`begins here`)
		s.presses("C-c")
		s.until(prompt)
		looks("an answer is stopped")
		s.says("run it")
		s.until(`20$`)
		looks("a command runs")
		s.presses("C-c")
		s.unless(`⠿|[⠀-⣿]`)
		looks("the command is stopped")
		s.types("not this")
		s.until(`not this`)
		s.presses("C-c")
		s.until(prompt)
		s.presses("C-c")
		s.until(`again`)
		looks("at the empty prompt")
		s.presses("C-c")
		s.until(`^\$ ?$`)
		looks("left")
	},
}, {
	name: "resize",
	play: func(s *screen, looks func(string)) {
		// A paragraph higher than the small terminal, which grows on in the large one, with
		// nothing above that could come back.
		words := strings.Repeat("and the goats went on ", 10)
		story := "It begins here " + strings.Repeat(words, 5) + hold
		for i := range 4 {
			story += fmt.Sprintf("%s to gate %d. %s", words, i, hold)
		}
		s.chats()
		s.answers(text("%s", story+"Goodnight."))
		s.says("tell")
		s.held()
		s.until(`^It begins here`)
		s.resizes(size{60, 16})
		s.unless(`^It begins here`)
		s.resizes(s.size)
		s.until(`^It begins here`)
		for i := range 4 {
			s.goesOn()
			s.until(fmt.Sprintf(`gate\s+%d\.`, i))
			s.held()
		}
		s.goesOn()
		if !poll(s.t, func() bool { return strings.Contains(s.scrollback(), "Goodnight") }) {
			s.t.Error("the answer does not end")
		}
		if n := strings.Count(s.scrollback(), "It begins here"); n > 3 {
			s.t.Errorf("an answer that grows after a resize is begun %d times\n%s", n, s.scrollback())
		}

		other := sizes[0]
		if s.size == other {
			other = size{100, 30}
		}
		many := numbered(120)
		at := strings.Index(many, "- 000060")
		s.answers(text("%s", many[:at]+hold+many[at:]),
			calls("", call("file_read", `{"path":"notes.md"}`)), calls("", edit("order new rope", "order a new rope")), text("That was all."))
		s.says("count")
		s.held()
		s.until(`000058`)
		s.resizes(other)
		s.settles()
		s.goesOn()
		s.until(`000119`)
		s.until(prompt)
		looks("after a resize in an answer")
		s.says("edit")
		s.until(question)
		s.settles()
		s.resizes(s.size)
		s.until(question)
		looks("after a resize in a question")
		s.chooses("y", `That was all`)
		s.until(prompt)
		s.once(120)
	},
}, {
	name: "paste",
	play: func(s *screen, looks func(string)) {
		var trace strings.Builder
		for i := range 500 {
			fmt.Fprintf(&trace, "at frame %d of the stack, in garden.Goats.open\n", i)
		}
		s.answers(text("I see 500 lines."))
		s.chats()
		s.pastes(trace.String())
		looks("pasted")
		s.presses("Enter")
		s.until(`I see 500 lines`)
		s.until(prompt)
		looks("sent")
		if asked := s.model.asked; len(asked) != 1 || strings.Count(asked[0], "at frame ") != 500 {
			s.t.Errorf("the model got %q", asked)
		}
		s.presses("Up")
		looks("the last prompt again")
		// The end is torn, or lost; what comes after it answers no question.
		s.presses("C-c")
		s.until(prompt)
		s.sends("\x1b[200~torn\x1b[20")
		s.sends("1~")
		s.types(" and more")
		s.until(`^> torn and more$`)
		s.presses("C-c")
		s.until(prompt)
		s.sends("\x1b[200~lost \xf0\x9f")
		s.sends("\x90\x90\x1b[13;2ua goat")
		s.until(`(?s)^> lost 🐐$\s*^  a goat$`)
		s.presses("C-c")
		s.until(prompt)
		s.answers(calls("", bash("touch made")), text("Not made."))
		s.says("make it")
		s.until(question)
		s.settles()
		s.sends("\x1b[200~is it\x1b[20")
		s.until(`^> is it$`)
		s.sends("1 safe?\r")
		s.sends("y")
		s.until(`(?s)^> is it1 safe\?$\s*^  y$`)
		s.settles()
		s.presses("Escape")
		s.unless(`is it`)
		s.chooses("n", `Not made`)
	},
}, {
	name: "typing",
	play: func(s *screen, looks func(string)) {
		s.answers(text("You asked once."))
		s.chats()
		s.types("/")
		looks("the commands")
		s.types("con")
		s.presses("Tab")
		looks("a command is completed")
		s.presses("C-c")
		s.until(prompt)
		s.types("look at @no")
		looks("the files")
		s.presses("Tab")
		looks("a file is completed")
		s.presses("Enter")
		s.until(`asked once`)
		s.until(prompt)
		looks("a file is mentioned")
		s.says("!cat README.md")
		s.until(`day by day`)
		s.until(prompt)
		looks("a command of the person")
		s.says("/nothing")
		s.until(`is not a command`)
		s.says("/quit")
		s.until(`^\$ ?$`)
		s.says("clear; stockade session resume last")
		s.until(prompt)
		looks("resumed")
		s.presses("Up", "Up")
		looks("the history of before")
		s.presses("C-c")
		s.until(prompt)
		s.types("héllo 世界 👩‍👩‍👧 e\u0301 שלום")
		s.presses("Left", "Left", "Left", "Left", "Left", "BSpace")
		looks("characters of all kinds are typed")
	},
}, {
	name: "characters",
	play: func(s *screen, looks func(string)) {
		title := s.tell("", "display-message", "-p", "-t", "s", "#{pane_title}")
		s.answers(
			text("# Goats, 山羊 and 🐐\n\nA *word* in `code`, a **bold** one, e\u0301 and שלום.\n\n| name | what | n |\n|---|:--:|---:|\n| rope | 新しいロープ | 12 |\n| 👩‍👩‍👧 | a family | 3 |\n\n"+
				"1. first\n2. second\n   - inside\n\n```go\nfunc main() {\n\tfmt.Println(\"世界\", 1) // a comment\n}\n```\n\n> quoted\n\n"+
				"A [link](https://example.org/goats) and a line that is long enough to be broken at some place, whatever the width of the terminal is, because it goes on and on until nobody reads it any more."),
			text("%s", "Before \x1b]0;owned\x07 \x1b[31mred\x1b[2J\x1b[H \u009b2J \u202eright to left\u202c, zero\u200bwidth and \x08\x08\x08back. After."),
			calls("", bash(`printf 'a\033[2Jb \033]0;owned\007 \342\200\256c'`)), text("It is printed."))
		s.chats()
		s.says("show me")
		s.until(`any more`)
		s.until(prompt)
		looks("Markdown")
		s.says("attack")
		s.until(`After`)
		s.until(prompt)
		looks("an answer with escapes")
		s.says("print it")
		s.until(`is printed`)
		s.until(prompt)
		looks("output with escapes")
		if now := s.tell("", "display-message", "-p", "-t", "s", "#{pane_title}"); now != title {
			s.t.Errorf("the title of the terminal became %q", now)
		}
	},
}, {
	name: "trouble",
	play: func(s *screen, looks func(string)) {
		again := calls("", call("file_read", `{"path":"missing.md"}`))
		s.answers(
			calls("", call("file_read", `{"path":"note.md"}`), call("rewrite_file", `{"file":"notes.md"}`), edit("nothing like it", "x"), bash("make nothing")),
			text("That did not work."),
			again, again, again, again,
			offline.Answer{Fault: offline.Fault{Status: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "38"}, Error: &openai.APIError{Message: "Slow down.", Type: "rate_limit", Code: "rate_limit_exceeded"}}},
			offline.Answer{Fault: offline.Fault{Status: http.StatusUnauthorized, Error: &openai.APIError{Message: "No such key.", Type: "invalid_request_error", Code: "invalid_api_key"}}},
			calls("", bash("seq 1 300")), text("It is counted."))
		s.chats()
		s.says("do something")
		s.until(`did not work`)
		s.until(prompt)
		looks("calls that fail")
		s.says("do it again and again")
		s.until(`nothing new`)
		s.until(prompt)
		looks("a loop")
		s.says("is anybody there?")
		s.until(`429|busy`)
		looks("the provider is busy")
		s.presses("C-c")
		s.until(prompt)
		s.says("and now?")
		s.until(`No such key`)
		s.until(prompt)
		looks("a key that is refused")
		s.says("count")
		s.until(`is counted`)
		s.until(prompt)
		looks("a long result")
		s.says("/show")
		looks("all of it")
	},
}, {
	name: "plain",
	play: func(s *screen, looks func(string)) {
		turn := func() {
			s.answers(calls("", call("file_read", `{"path":"notes.md"}`)), calls("", edit("two goats", "Two goats")), text("It is **done**."))
			s.says("correct the notes")
			s.until(question)
			s.settles()
			s.presses("n")
			s.settles()
			s.presses("Enter")
			s.until(`done`)
			s.until(prompt)
		}
		s.says("stockade chat --plain")
		s.until(prompt)
		turn()
		looks("--plain")
		s.says("/quit")
		s.until(`^\$ ?$`)
		s.says("clear; TERM=dumb stockade chat")
		s.until(prompt)
		turn()
		looks("TERM=dumb")
		s.says("/quit")
		s.until(`^\$ ?$`)
		s.says("clear; NO_COLOR=1 stockade chat")
		s.until(prompt)
		s.answers(text("It is **bold** and `code`."))
		s.says("say something")
		s.until(`bold`)
		s.until(prompt)
		looks("NO_COLOR")
		if colored := regexp.MustCompile(`\x1b\[[0-9;]*\b(3|4|9|10)[0-7]\b[0-9;]*m`).FindString(s.capture("-e")); colored != "" {
			s.t.Errorf("there is a colour: %q", colored)
		}
	},
}, {
	name: "modes",
	play: func(s *screen, looks func(string)) {
		s.answers(
			calls("", call("file_read", `{"path":"notes.md"}`)), calls("", edit("two goats", "Two goats")),
			calls("", bash("echo rope > list.txt && git add list.txt && git commit -qm 'A list'")), calls("", bash("git reset -q --hard HEAD~1")),
			text("It is done."))
		s.chats()
		s.says("correct the notes, and keep a list")
		s.until(question)
		looks("a question with an answer for all changes here")
		s.settles()
		s.presses("?")
		looks("its details")
		s.settles()
		s.presses("w")
		s.until(`loses commits`)
		looks("what is asked about all the same")
		s.chooses("n", `It is done`)
		s.until(prompt)
		looks("auto")
		s.presses("BTab")
		s.until(`plan:`)
		s.answers(calls("", bash("echo x > other; cat list.txt")), text("I would add a list of tools."))
		s.says("what else?")
		s.until(`list of tools`)
		s.until(prompt)
		looks("plan")
		s.presses("BTab")
		s.settles()
		looks("ask")
		s.says("/mode auto")
		s.says("/permissions")
		s.until(`plain changes of files below`)
		looks("the permissions")
		s.says("/new")
		s.until(`(?s)/permissions.*session 01`)
		s.says("/resume")
		s.until(`Go on with which`)
		looks("the sessions")
		s.settles()
		s.presses("a")
		s.until(`list of tools`)
		s.until(prompt)
	},
}}
