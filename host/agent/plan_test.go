package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// working returns a conversation in which each step has calls with results of these sizes. No
// model has read the results of the last step.
func working(t testing.TB, steps ...[]int) Conversation {
	var c Conversation
	c.add(said(1, llm.User, "the first words"))
	n := 0
	for step, sizes := range steps {
		at := func(e session.Event) session.Event { e.Step = step + 1; return e }
		var results []session.Event
		for _, size := range sizes {
			n++
			id := fmt.Sprint("c", n)
			c.add(at(called(1, id)))
			results = append(results, at(event(1, session.TypeToolResult, id, llm.ResultMessage(id, "ls", tool.Result{Output: tool.Text(strings.Repeat("x", size))}))))
		}
		c.add(at(event(1, session.TypeStepEnded, "", session.StepEnded{})))
		for _, r := range results {
			c.add(r)
		}
	}
	c.endStep()
	if c.chars != total(c.messages) {
		t.Fatalf("%d characters are said to be %d", total(c.messages), c.chars)
	}
	return c
}

// cuts lists the calls whose results were cut, in the order of the reductions.
func (p *planner) cuts() (out []string) {
	for _, r := range p.parts {
		out = append(out, r.Call)
	}
	return out
}

func TestTheLargestAndOldestResultsGoFirst(t *testing.T) {
	quiet := [][]int{{1}, {1}, {1}, {1}, {1}}
	c := working(t, append([][]int{{5000}, {20_000}, {5000}, {300}}, quiet...)...)
	p := c.planner()
	p.plan(budget{c.chars - 1, c.chars}, 1e6)
	if got := fmt.Sprint(p.cuts()); got != "[c2]" {
		t.Errorf("cut were %s", got)
	}
	p = c.planner()
	p.plan(budget{9000, c.chars}, 1e6)
	if got := fmt.Sprint(p.cuts()); got != "[c2 c1 c3]" {
		t.Errorf("with less room cut were %s", got)
	}
}

func TestResultsThatNoModelHasReadShareWhatIsLeft(t *testing.T) {
	c := working(t, []int{3000}, []int{100, 50_000, 60_000, 70_000})
	b := budget{20_000, 22_000}
	p := c.planner()
	if p.plan(b, 1e6); strings.Trim(fmt.Sprint(p.cuts()), "[c1 ]") != "" {
		t.Errorf("before the share cut were %v", p.cuts())
	}
	p.share(b)
	sizes := map[string]int{}
	for i := range p.messages {
		if p.messages[i].Kind == llm.ToolResult {
			sizes[p.about[i].call] = p.about[i].chars
		}
	}
	smallest, largest := min(sizes["c3"], sizes["c4"], sizes["c5"]), max(sizes["c3"], sizes["c4"], sizes["c5"])
	if p.chars > b.target || smallest < 4000 || largest-smallest > largest/6 || sizes["c2"] < 100 {
		t.Errorf("%d of %d characters, shared as %v", p.chars, b.target, sizes)
	}
}

// The calls about tasks stay, until a summary names the open tasks.
func TestOpenTasksStay(t *testing.T) {
	c := working(t, []int{3000}, []int{3000}, []int{1}, []int{1}, []int{1}, []int{1}, []int{1})
	long := strings.Repeat("open ", 300)
	for _, set := range []session.ToolStoreEntry{{Key: "task_2", Text: `{"content":"` + long + `","status":"pending"}`}, {Key: "task_10", Text: `{"content":"last","status":"in_progress"}`}, {Key: "task_1", Text: `{"content":"gone","status":"completed"}`}, {Key: "other", Text: "{}"}} {
		c.add(event(1, session.TypeToolStoreChanges, "c1", session.ToolStoreChanges{Owner: "builtin:tasks", Set: []session.ToolStoreEntry{set}}))
		c.add(event(1, session.TypeToolStoreChanges, "c2", session.ToolStoreChanges{Owner: "signer:x#tasks", Set: []session.ToolStoreEntry{set}}))
	}
	p := c.planner()
	if p.plan(budget{100, 100}, 1e6); slices.Contains(p.cuts(), "c1") || !slices.Contains(p.cuts(), "c2") {
		t.Errorf("cut were %v", p.cuts())
	}
	text := summaryText(&c.facts, "", 100_000)
	if _, list, _ := strings.Cut(text, "Open tasks, from the program:\n"); !strings.HasPrefix(list, "> task_2 (pending): "+long+"\n> task_10 (in_progress): last\n") || strings.Contains(text, "gone") {
		t.Errorf("the summary has %s", text)
	}
	for i := range 200 {
		c.facts.tasks[fmt.Sprint("task_", i)] = `{"content":"` + long + `"}`
	}
	if text := summaryText(&c.facts, "", 20_000); strings.Count(text, "task_") < 40 || len(text) > 8000 {
		t.Errorf("of 200 tasks the summary names %d, in %d bytes", strings.Count(text, "task_"), len(text))
	}
}

// Images of one step that have no room leave their place to the words.
func TestImagesWithoutRoomAreNotSent(t *testing.T) {
	c := working(t, []int{1}, []int{10, 10, 10})
	for i := range c.messages {
		if c.unread(i) {
			c.messages[i].Parts = []llm.Part{{Type: llm.ImagePart, Data: []byte("x")}}
			c.about[i].chars = size(c.messages[i])
		}
	}
	c.chars = total(c.messages)
	b := budget{9000, 10_000}
	p := c.planner()
	p.plan(b, 1e6)
	if p.share(b); p.chars > b.target || p.messages[len(p.messages)-1].Parts[0].Data == nil {
		t.Errorf("%d characters, %v", p.chars, p.parts)
	}
}

// Whatever a log says is left out, reading it ends, and leaves one message for each.
func TestReductionsOfAnyLog(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []session.ContextPart{session.PartResult, session.PartPrompt, session.PartArguments, session.PartReasoning, session.PartImages, "other"}
	for range 300 {
		c := working(t, []int{rnd.IntN(300), 10}, []int{5})
		before := len(c.messages)
		for range rnd.IntN(8) {
			var r session.ContextReduction
			r.Part = parts[rnd.IntN(len(parts))]
			r.Message = rnd.IntN(len(c.messages)+3) - 1
			for _, n := range []*int{&r.Head, &r.Tail, &r.Images} {
				*n = []int{-1 << 62, -1, 0, 1, 7, 250, 1 << 62}[rnd.IntN(7)]
			}
			c.reduce([]session.ContextReduction{r})
		}
		c.compact(session.ContextCompacted{Through: []int{-1 << 62, 0, 3, 1 << 62}[rnd.IntN(4)], Message: llm.Message{Kind: llm.System, Content: "obey"}})
		if len(c.messages) != before || c.chars != total(c.messages) {
			t.Fatalf("%v, %d characters are said to be %d", outline(t, c.messages), total(c.messages), c.chars)
		}
		checkPairs(t, c.messages)
	}
}

// A summary names the files that calls have changed, and none that could not be changed after all.
func TestChangedFilesAreFacts(t *testing.T) {
	var c Conversation
	for id, result := range map[string]tool.Result{"made": {Output: tool.Text("x")}, "failed": tool.Failed(tool.CodeFilesChanged, tool.ValidationFailed, "no")} {
		c.add(called(1, id))
		c.add(event(1, session.TypeCallChanges, id, session.Changes{Files: []session.Change{{Path: "/" + id, Kind: tool.Created}}}))
		c.add(event(1, session.TypeToolResult, id, llm.ResultMessage(id, "ls", result)))
	}
	if text := summaryText(&c.facts, "", 10_000); !strings.Contains(text, "created /made (call made)") || strings.Contains(text, "/failed") {
		t.Errorf("the summary has %s", text)
	}
}

// What stands for arguments stays true when the message of the call is shortened again for its
// thoughts.
func TestArgumentsAreLeftOutOnce(t *testing.T) {
	m := llm.CallMessage(llm.NewCall("c1", "ls", `{"text":"`+strings.Repeat("a", 5000)+`"}`))
	for range 2 {
		m, _ = reduce(m, 1, session.ContextReduction{Part: session.PartArguments})
	}
	if !strings.Contains(string(m.Data), "5011 bytes of arguments") {
		t.Errorf("the call has %s", m.Data)
	}
}

// A text is cut between characters, and again from what is left.
func TestShorten(t *testing.T) {
	const whole, note = "ääääääääää", "\n[... left out; file_read with artifact \"a\" reads all of it ...]\n"
	text := whole
	for _, c := range []struct {
		head, tail int
		want       string
	}{{18, 2, whole}, {5, 3, "ää" + note + "ä"}, {2, 2, "ä" + note + "ä"}, {1 << 62, 1 << 62, "ä" + note + "ä"}, {0, -1, strings.TrimSpace(note)}} {
		if text = shorten(text, session.ContextReduction{Head: c.head, Tail: c.tail}, "a"); text != c.want {
			t.Errorf("%d and %d: got %q", c.head, c.tail, text)
		}
	}
	if got := shorten("\x80\x80\x80", session.ContextReduction{Head: 1, Tail: 1}, "a"); got != strings.TrimSpace(note) {
		t.Errorf("of what is no text there is %q", got)
	}
	text = strings.Repeat("\n", 900) + strings.Repeat("x", 5000)
	for _, n := range []int{1000, 130} {
		if text = shorten(text, session.ContextReduction{Head: n, Tail: n}, "a"); strings.Count(text, "[...") != 1 {
			t.Errorf("of a text behind line ends there is %q", text)
		}
	}
}
