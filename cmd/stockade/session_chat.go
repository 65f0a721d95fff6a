package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
)

// greet shows the end of a resumed conversation, and names the session.
func (t *conversation) greet() {
	if !t.a.flags.quiet {
		t.printTail()
		t.a.s.note("session %s in %s; /help shows the commands", t.Log.ID(), t.a.Workspace)
	}
}

// begin leaves the session for a new one, with the same model. What was allowed for the session is
// asked about again.
func (t *conversation) begin(ctx context.Context, _ string) error { return t.enter(ctx, "") }

// enter leaves the session for the one with an id, or for a new one if id is empty.
func (t *conversation) enter(ctx context.Context, id string) error {
	fresh, err := openConversation(ctx, t.a, id, t.answer, t)
	if err != nil {
		return err
	}
	left := t.Session
	fresh.chat = true
	*t = *fresh
	if t.a.ui != nil {
		t.a.ui.BeginSession(t.liveTranscript())
	}
	t.greet()
	return left.Close()
}

// maxPicked is the number of sessions that /resume lists, one for each key.
const maxPicked = 9

// resume goes on with an earlier conversation of this workspace: the only one that has all words in
// its title or id, or the one that the person chooses. Where nobody can be asked it lists them.
func (t *conversation) resume(ctx context.Context, words string) error {
	_, infos, err := t.a.sessions(ctx)
	if err != nil {
		return err
	}
	infos = slices.DeleteFunc(infos, func(i session.Info) bool {
		return !i.Conversation || i.ID == t.Log.ID() || i.Workspace != t.a.Workspace || !hasWords(i, strings.Fields(words))
	})
	switch {
	case len(infos) == 0:
		return errors.New("there is no other such session of this workspace; `stockade session list` shows all")
	case len(infos) == 1 && words != "":
		return t.enter(ctx, infos[0].ID)
	}
	shown := infos[:min(len(infos), maxPicked)]
	w := table.New(table.Fixed(""), table.Fixed("SESSION"), table.Fixed("LAST"), table.Fixed("TURNS"), table.Text("TITLE"))
	var choices []prompt.Choice
	for n, i := range shown {
		choices = append(choices, prompt.Choice{Letter: 'a' + rune(n)})
		w.Row(string(choices[n].Letter), i.ID, i.Last.Local().Format(time.DateTime), i.Turns, humanize.Clip(titleOf(i), 60))
	}
	if more := len(infos) - len(shown); more > 0 {
		t.a.s.note("%s not shown; words of a title choose among all: /resume WORDS", humanize.Plural(more, "older session"))
	}
	asker := t.a.asker(t.lines)
	if asker == nil {
		t.a.s.note("nobody can be asked which; name one: /resume SESSION")
		return t.a.s.table(w)
	}
	var list strings.Builder
	if err := w.Write(&list, t.a.s.width()); err != nil {
		return err
	}
	choice, err := asker.Ask(ctx, prompt.New("Go on with which?", append(choices, prompt.Choice{Letter: 'n', Label: "none"}), list.String, list.String))
	if i := int(choice.Letter - 'a'); err == nil && i >= 0 && i < len(shown) {
		return t.enter(ctx, shown[i].ID)
	}
	return err
}

// permissions lists the rules and answers that allow calls without a question, or takes back the
// answers of this session.
func (t *conversation) permissions(_ context.Context, arg string) error {
	switch {
	case arg == "revoke":
		t.Revoke()
		t.a.s.note("the answers of this session are taken back, and auto; what other sessions get, too, is in `stockade policy show`")
		return nil
	case arg != "":
		return errors.New("use /permissions, or /permissions revoke")
	}
	w := table.New(table.Text("ALLOWED WITHOUT A QUESTION"), table.Text("BY"))
	rules := t.Permissions()
	for _, r := range rules {
		by := cmp.Or(r.Origin, t.a.Dirs.AnswersFile()) // without an origin it was answered in this session
		switch r.Source {
		case policy.SourceSession:
			by = "your answer, until this session is left"
		case policy.SourceFlag:
			by = "--allow"
		}
		w.Row(r.InWords(), by)
	}
	open := t.Freedom().Opened()
	for _, o := range open {
		w.Row("plain changes of files below "+o.Dir+", by built-in tools and commands", cmp.Or(o.From.Origin, "your answer or mode, until this session is left"))
	}
	if len(rules)+len(open) == 0 {
		t.a.s.note("no answer and no rule allows more than the risk of a tool does: what changes something is asked about")
		return nil
	}
	t.a.s.hint("/permissions revoke takes back the answers of this session, and `stockade policy revoke` those that are kept")
	return t.a.s.table(w)
}

// modes holds what each mode means, for the person.
var modes = map[policy.Mode]string{
	policy.ModeAsk:  "ask: what changes something is asked about",
	policy.ModeAuto: "auto: plain changes here are made without a question; Shift-Tab: plan",
	policy.ModePlan: "plan: nothing is changed and no host is reached; Shift-Tab: ask",
}

// mode changes to the mode with a name, and says which it is now.
func (t *conversation) mode(_ context.Context, name string) error {
	f := t.a.session.Load().Freedom()
	if m := policy.Mode(name); m == policy.ModeAuto && len(t.a.Ceiling.NoAuto) > 0 {
		return fmt.Errorf("auto is not permitted: %s", t.a.Ceiling.NoAuto[0].From)
	} else if modes[m] != "" {
		f.SetMode(m, t.a.Workspace)
	} else if name != "" {
		return errors.New("use /mode ask, /mode auto or /mode plan")
	}
	t.a.s.note("%s", modes[f.Mode()])
	return nil
}

// nextMode changes from ask to auto, from auto to plan, and from plan to ask. Where auto is not
// permitted, it is left out.
func (t *conversation) nextMode() {
	f := t.a.session.Load().Freedom()
	next := map[policy.Mode]policy.Mode{policy.ModeAsk: policy.ModeAuto, policy.ModeAuto: policy.ModePlan, policy.ModePlan: policy.ModeAsk}[f.Mode()]
	if next == policy.ModeAuto && len(t.a.Ceiling.NoAuto) > 0 {
		next = policy.ModePlan
	}
	f.SetMode(next, t.a.Workspace)
}

// modeText returns the row about the mode; empty for the usual mode.
func (t *conversation) modeText() string {
	if m := t.a.session.Load().Freedom().Mode(); m != policy.ModeAsk {
		return modes[m]
	}
	return ""
}
