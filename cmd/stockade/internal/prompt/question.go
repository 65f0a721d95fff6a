package prompt

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Question is what a person is asked, and what the host has looked up for it.
type Question struct {
	policy.Question
	// LeadsTo is where a path leads, by the path, if that is elsewhere: through
	// symbolic links.
	LeadsTo map[string]string

	diffs map[int]*diff.Text // differences of changes that are shown at once, by index
}

// ForCall is the prompt about one call.
func ForCall(q Question) *Prompt {
	q = q.withDiffs()
	p := &Prompt{
		question: questionText(q), recap: headline(q), yesReply: "allowed", noReply: "not allowed",
		rows: func(v View, room int) ([]string, bool) {
			p := rowBuilder{v: v}
			p.question(q, "", room)
			return p.fit(room)
		},
		details:  func(v View) []string { return details(v, q) },
		fullText: (&fullText{qs: []Question{q}}).page,
	}
	if len(q.Call.Args) > len("{}") {
		p.arguments = func(v View) []string {
			p := rowBuilder{v: v, all: true}
			p.quoted(gutter([]string{humanize.JSON(q.Call.Args)}, v.width()), 0)
			return p.out
		}
	}
	yes := Choice{Letter: 'y', Label: "yes", scope: policy.ScopeOnce}
	if q.Histories != nil {
		yes.Label, p.noReply = "yes, all commands, this session", "hidden from commands in this session"
	} else if q.Changes != nil {
		p.yesReply, p.noReply = "kept", "not kept"
	} else {
		yes.Label = "once"
	}
	p.choices = append(p.choices, yes)
	for _, s := range scopes {
		if !slices.Contains(q.Scopes, s.scope) {
			continue
		}
		c := Choice{Letter: s.letter, Label: s.covers(q) + s.words, scope: s.scope, rule: s.as + ": " + s.covers(q)}
		if s.scope == policy.ScopeSession && q.Histories != nil {
			continue // "y" is for the session already
		}
		if s.scope == policy.ScopeSession || q.Histories != nil {
			p.choices = append(p.choices, c)
		} else {
			p.moreChoices = append(p.moreChoices, c)
		}
	}
	p.choices = append(p.choices, Choice{Letter: 'n', Label: "no"})
	return p
}

// scopes are the answers beyond one call, in the order in which they are listed.
var scopes = []struct {
	scope  policy.Scope
	letter rune
	words  string // behind what it covers
	as     string // "allowed ..."
	covers func(q Question) string
}{
	{policy.ScopeTurn, 't', ", this turn", "for this turn", coverage},
	{policy.ScopeSession, 's', ", this session", "for this session", coverage},
	{policy.ScopeProject, 'p', ", kept for this workspace", "in this workspace", coverage},
	{policy.ScopeAlways, 'a', ", kept for all workspaces", "from now on", coverage},
	{policy.ScopeBelow, 'b', ", this session", "for this session", coverageBelow},
	{policy.ScopeKeepBelow, 'k', ", kept", "from now on", coverageBelow},
}

// coverage is what such an answer covers: its rule says so at length.
func coverage(q Question) string {
	switch {
	case q.Histories != nil:
		return "all commands"
	case q.Command != "":
		return "this command"
	case q.OpensHost != "" && soleHost(q) != "":
		return "every " + humanize.ToolName(q.Tool) + " to " + soleHost(q)
	case q.OpensHost != "":
		return "every " + humanize.ToolName(q.Tool) + " to that host"
	}
	return "every " + humanize.ToolName(q.Tool)
}

func coverageBelow(q Question) string {
	return "whatever " + humanize.ToolName(q.Tool) + " changes in one directory"
}

// keyOneByOne is the key of a batch that wants each of its calls asked about by itself.
const keyOneByOne = 'e'

// answeredBy is who answers at a prompt.
const answeredBy = "terminal"

// answer is what a choice says to the policy.
func (c Choice) answer() policy.Answer {
	return policy.Answer{Allow: c.scope != "", Scope: c.scope, By: answeredBy}
}

// forCalls is the prompt about several calls. One yes is for all of them only if all of each
// is on the screen.
func forCalls(qs []Question) *Prompt {
	qs = slices.Clone(qs)
	for i := range qs {
		qs[i] = qs[i].withDiffs()
	}
	p := &Prompt{
		question: "Allow them?", recap: fmt.Sprintf("%d calls", len(qs)), yesNeedsAll: true, yesReply: "allowed", noReply: "none of them is allowed",
		choices: []Choice{
			{Letter: 'y', Label: fmt.Sprintf("yes to all %d, all of each is above", len(qs)), scope: policy.ScopeOnce},
			{Letter: keyOneByOne, Label: "one by one"},
			{Letter: 'n', Label: "no to all"},
		},
		rows: func(v View, room int) ([]string, bool) {
			p := rowBuilder{v: v}
			p.own(terminal.Bold, "  ", fmt.Sprintf("%d calls wait for an answer", len(qs)))
			each := max((room-1)/len(qs), 5)
			for i, q := range qs {
				p.question(q, fmt.Sprintf("%d. ", i+1), max(each, room-len(p.out)-each*(len(qs)-1-i)))
				p.folded = p.folded || len(q.BindingChanges) > 0 // what is different stands behind "?"
			}
			return p.fit(room)
		},
	}
	p.details = func(v View) (out []string) {
		for i, q := range qs {
			out = append(append(out, v.ownRows(terminal.Bold, "  ", fmt.Sprintf("%d. %s", i+1, headline(q)))...), details(v, q)...)
		}
		return out
	}
	p.fullText = (&fullText{qs: qs}).page
	return p
}

// questionText is what a person is asked.
func questionText(q Question) string {
	switch {
	case q.Histories != nil:
		return "May commands read them there?"
	case nothingChanged(q):
		return "Give out its result?"
	case q.Changes != nil:
		return "Keep these changes?"
	case soleHost(q) != "":
		return "Let it reach " + soleHost(q) + "?"
	}
	return "Run it?"
}

// soleHost is the one host that a call of a tool would reach, if that may stand in a row
// of ours and is short.
func soleHost(q Question) string {
	host := q.OpensHost
	if host == "" && q.Command == "" && len(q.Network) == 1 {
		host = q.Network[0]
	}
	if !isPlainWord(host) || len(host) > maxInline {
		return ""
	}
	return host
}

// nothingChanged: the call has run, and there is nothing but its result to keep.
func nothingChanged(q Question) bool { return q.Changes != nil && q.Changes.Empty() }

// headline names the tool and what it has done, in a row of ours: nothing of others
// stands in it but what is plain.
func headline(q Question) string {
	told, _ := q.singleChange()
	switch {
	case q.Histories != nil:
		return "what looks like a secret can be read in the history of git"
	case q.Changes == nil:
		return humanize.ToolName(q.Tool) + " wants to run"
	case q.Command != "" || nothingChanged(q):
		return humanize.ToolName(q.Tool) + " has run"
	case told != "":
		return humanize.ToolName(q.Tool) + "  " + told
	}
	return humanize.ToolName(q.Tool) + " wants to keep what it did"
}

// rowBuilder is rows on their way.
type rowBuilder struct {
	v      View
	all    bool // nothing is folded
	folded bool
	first  int // how many rows at the beginning are folded last
	spoofCheck
	out []string
}

// fit folds all that there is, where it still does not fit.
func (p *rowBuilder) fit(room int) ([]string, bool) {
	const least = 6 // in fewer, what is asked is lost
	room = max(room, least)
	if len(p.out) <= room {
		return p.out, p.folded
	}
	var said []row
	middle := len(p.out) - room
	for said = notes(p.v.width(), "%d rows are folded", middle); len(said)+len(p.out)-middle > room; middle++ {
	}
	head := max((room-len(said))/2, min(p.first, room-len(said)-2))
	return slices.Concat(p.out[:head], p.v.rows(said), p.out[head+middle:]), true
}

// own writes a line of ours, in as many rows as it needs.
func (p *rowBuilder) own(style, indent, text string) {
	p.out = append(p.out, p.v.ownRows(style, indent, text)...)
}

// quoted writes rows behind bars, at most so many; 0: all.
func (p *rowBuilder) quoted(rows []row, most int) {
	cut := false
	if !p.all && most > 0 {
		rows, cut = folded(rows, most, p.v.width())
	}
	p.folded = p.folded || cut
	p.out = append(p.out, p.v.rows(rows)...)
}

// text writes a text of others.
func (p *rowBuilder) text(text string, most int) {
	p.lines(strings.Split(text, "\n"), most)
}

// lines writes texts of others, each as one line.
func (p *rowBuilder) lines(texts []string, most int) {
	p.check(strings.Join(texts, "\n"))
	p.quoted(gutter(texts, p.v.width()), most)
}

// titled writes a title of ours, and a text of others, if there is one: behind it where
// that is plain and fits, and else below it, behind bars.
func (p *rowBuilder) titled(title, text string) {
	if text == "" {
		return
	}
	p.check(text)
	if row := fmt.Sprintf("  %-10s %s", title, text); plainWords().MatchString(text) && len(row) < p.v.width() {
		p.out = append(p.out, row)
		return
	}
	p.own("", "  ", title)
	p.text(text, 0)
}

// warn writes a warning in words of ours.
func (p *rowBuilder) warn(text string) {
	p.quoted(prefixRows(alarm, terminal.Red, terminal.Wrap(text, Room(p.v.width()))), 0)
}

// findings writes what was found in the texts of others.
func (p *rowBuilder) findings() {
	for _, found := range p.found {
		p.warn(found)
	}
}

// plainWords are what may stand in a row of ours: they can be taken for no key and no
// quotation.
var plainWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._/:,;'@+*~-]+( [A-Za-z0-9._/:,;'@+*~-]+)*$`)
})

// isPlainWord is what may stand as one word in a row of ours.
func isPlainWord(text string) bool {
	return plainWords().MatchString(text) && !strings.Contains(text, " ")
}

// question writes what a person needs to answer one question, in so many rows.
func (p *rowBuilder) question(q Question, number string, room int) {
	p.spoofCheck = spoofCheck{}
	begin := len(p.out)
	p.head(q, number)
	// What comes behind the texts is counted first: they get what is left.
	end := rowBuilder{v: p.v}
	end.location(q)
	end.warnings(q)
	p.body(q, max(room-(len(p.out)-begin)-len(end.out), 3))
	p.location(q)
	p.warnings(q)
	p.findings()
}

// head is the headline: with how many lines change, or why it is asked.
func (p *rowBuilder) head(q Question, number string) {
	text, counts := number+headline(q), ""
	if q.Command == "" {
		_, counts = q.singleChange()
	}
	why := askReason(q)
	if row := text + "   (" + why + ")"; why != "" && len("  "+row+"  "+counts) < p.v.width() {
		text, why = row, ""
	}
	p.rightAligned(terminal.Yellow, text, counts)
	if why != "" {
		p.own(terminal.Yellow, "  ", "("+why+")")
	}
}

// rightAligned writes a line of ours with something at its right end.
func (p *rowBuilder) rightAligned(style, text, right string) {
	if space := min(p.v.width(), maxBeside) - 1 - len("  ") - len(text) - len(right); right != "" && space > 1 {
		text += strings.Repeat(" ", space) + right
		p.out = append(p.out, p.v.style(style, "  "+text))
		return
	}
	p.own(style, "  ", strings.TrimSpace(text+" "+right))
}

// maxBeside is how far at the right something stands beside a text: farther, no eye finds
// the way to it.
const maxBeside = 100

// askReason says in a few words of ours why it is asked; empty where that is plain to see, or
// takes more words.
func askReason(q Question) string {
	switch {
	case q.Histories != nil:
		return ""
	case q.AskingSource == policy.SourceAdmin:
		return "a rule of the administrator's asks each time"
	case q.AskingSource == policy.SourceProject:
		return "a rule of the project asks each time"
	case q.AskingSource != policy.SourceDefault && q.AskingSource != "":
		return "a rule of yours asks"
	case q.Changes != nil && q.Reason == "it changes files":
		return ""
	}
	reason := strings.TrimPrefix(strings.TrimPrefix(q.Reason, "it starts a process, and "), "it changes files, and ")
	if q.AskFirstReason != "" && (reason == "it starts a process" || !plainWords().MatchString(reason)) {
		reason = q.AskFirstReason + ", so it is asked first"
	}
	if len(reason) > maxReason || !plainWords().MatchString(reason) {
		return ""
	}
	return reason
}

// maxReason is how long a reason is that fits into the headline.
const maxReason = 100

// body writes what would run, and what would change, in about so many rows.
func (p *rowBuilder) body(q Question, room int) {
	begin := len(p.out)
	left := func() int { return min(max(room-(len(p.out)-begin), sideRows), foldRows) }
	if q.Histories != nil {
		p.histories(q, left)
		return
	}
	switch {
	case q.Command != "" && q.Changes != nil:
		p.text(q.Command, min(max(room/3, minFoldedRows), foldRows))
	case q.Command != "":
		p.text(q.Command, left())
	case q.Changes == nil && len(q.Call.Args) > len("{}"):
		p.arguments(q, left())
	}
	if nothingChanged(q) {
		p.own("", "  ", nothingChangedText[q.Failed])
		if q.Output != "" {
			p.own("", "  ", "it has written")
			p.text(q.Output, left())
		}
		return
	}
	if q.Changes == nil || p.all {
		return
	}
	told, counts := q.singleChange()
	switch {
	case q.Command == "":
	case told != "":
		p.rightAligned("", told, counts)
	default:
		p.own("", "  ", "it would change")
	}
	p.changes(q, told != "", left())
}

// histories writes what was found in the histories of repositories.
func (p *rowBuilder) histories(q Question, left func() int) {
	for _, h := range q.Histories {
		p.titled("repository", h.Repository)
		if len(h.Names) > 0 {
			p.own("", "  ", "its history, or its index, holds")
			p.lines(h.Names, left())
		}
		if !h.Whole && len(h.Names) == 0 {
			p.warn(fmt.Sprintf("its history is too large, or is damaged: %s were looked at, and nothing was found in them", humanize.Plural(h.Commits, "commit")))
		}
	}
	p.own("", "  ", "What commands read goes to the provider. After a no, git in commands finds no objects.")
}

// nothingChangedText say that a call has changed nothing, by whether it has failed.
var nothingChangedText = map[bool]string{false: "it has changed nothing", true: "it has changed nothing: the call has failed"}

// withDiffs computes the differences that are shown at once.
func (q Question) withDiffs() Question {
	if q.Changes != nil && q.diffs == nil {
		q.diffs = shownDiffs(q.Changes)
	}
	return q
}

// minLead is the least number of lines about changes, if there are many.
const minLead = 10

// changes writes the changes in about so many rows: first those that must not be overlooked,
// which are not folded, and then the others, each with its difference. If space is short,
// lines around changed ones are left out first, and titles are folded last.
func (p *rowBuilder) changes(q Question, titled bool, most int) {
	var items []changeItem
	for _, t := range q.Changes.SummaryLines(max(most-2, minLead)) {
		i := changeItem{SummaryLine: t}
		if t.IsSingle() {
			at := t.Members[0]
			if i.textDiff = q.diffs[at]; i.textDiff != nil {
				i.lines = linesOf(i.textDiff)
			}
			i.large = i.textDiff == nil && diff.SizeOf(q.Changes.At(at)) > 0 &&
				!slices.ContainsFunc(q.Changes.Unshown, func(u diff.Unshown) bool { return u.Change == at })
		}
		p.folded = p.folded || t.Shortened || !t.IsSingle() && len(t.Members) > 0
		items = append(items, i)
		p.check(t.Words)
	}
	rest := slices.IndexFunc(items, func(i changeItem) bool { return i.Care == diff.CarePlain && !i.NotShown && i.Members != nil })
	if rest >= 0 {
		slices.SortStableFunc(items[rest:], func(a, b changeItem) int { return cmp.Compare(a.order(), b.order()) })
	} else {
		rest = len(items)
	}
	for _, i := range items {
		for _, l := range i.lines {
			p.check(l.Text)
		}
	}
	rows := p.itemRows(items, titled, most)
	first := slices.Concat(rows[:rest]...)
	p.quoted(first, 0)
	if rest > 0 {
		p.first = len(p.out)
	}
	p.quoted(slices.Concat(rows[rest:]...), max(most-len(first), minFoldedRows))
	hidden := 0
	for _, t := range q.diffs {
		hidden += t.Hidden
	}
	if hidden > 0 {
		p.warn(hiddenLinesText(hidden))
	}
}

// hiddenLinesText says how many lines of a difference hold a secret, which is not shown.
func hiddenLinesText(lines int) string {
	if lines == 1 {
		return "1 line of it holds a known secret, which is not shown"
	}
	return fmt.Sprintf("%d lines of it hold a known secret, which is not shown", lines)
}

// itemRows returns the rows of items, with as much of their differences as there is room for.
func (p *rowBuilder) itemRows(items []changeItem, titled bool, most int) [][]row {
	width, left, total := p.v.width(), most, 0
	rows, texts := make([][]row, len(items)), make([][]row, len(items))
	for n, i := range items {
		if !titled || !i.IsSingle() {
			rows[n] = p.title(i)
		}
		texts[n] = rowsOfLines(i.lines, digits(i.textDiff), width, true)
		left, total = left-len(rows[n]), total+len(texts[n])
	}
	if total > left {
		for n, i := range items {
			texts[n] = rowsOfLines(i.lines, digits(i.textDiff), width, false)
		}
	}
	each := sharesOf(items, texts, left)
	counted := func(n int) bool { // its rows are only counted, in a row below
		return items[n].large || each[items[n].group()] < min(len(texts[n]), minFoldedRows)
	}
	for n := range items {
		if counted(n) {
			each = sharesOf(items, texts, left-1)
			break
		}
	}
	files, hidden := 0, 0
	for n, text := range texts {
		if items[n].large || len(text) > 0 {
			files++
		}
		if counted(n) {
			hidden++
			continue
		}
		text, cut := folded(text, each[items[n].group()], width)
		rows[n] = append(rows[n], text...)
		p.folded = p.folded || cut
	}
	if hidden > 0 {
		last := len(rows) - 1
		rows[last] = append(rows[last], notes(width, "what changes in %d of %d files is folded", hidden, files)...)
		p.folded = true
	}
	return rows
}

// maxTitle limits the rows of a line about changes.
const maxTitle = 4

// title returns the rows of a line about changes, with the numbers of added and removed lines.
func (p *rowBuilder) title(i changeItem) []row {
	words := i.Words
	if c := counts(i.textDiff); c != "" {
		words += "  " + c
	}
	rows := rowsOf("", words, "", p.v.width())
	if i.NotShown {
		rows = prefixRows(alarm, terminal.Red, inRows(markedLine(words), p.v.width()))
	}
	if p.all {
		return rows
	}
	rows, cut := folded(rows, maxTitle, p.v.width())
	p.folded = p.folded || cut
	return rows
}

// sharesOf returns how many rows each text of a group can have at most, see [changeItem.group]. A
// few rows are kept for each new file, if that takes at most half of all.
func sharesOf(items []changeItem, texts [][]row, left int) (each [2]int) {
	var lengths [2][]int
	for n, i := range items {
		lengths[i.group()] = append(lengths[i.group()], len(texts[n]))
	}
	reserved := minFoldedRows * len(lengths[1])
	if reserved > left/2 {
		reserved = 0
	}
	each[0] = fairShare(lengths[0], left-reserved)
	for _, n := range lengths[0] {
		left -= min(n, each[0])
	}
	each[1] = fairShare(lengths[1], left)
	return each
}

// fairShare returns how many rows each text can have at most, if all have left rows together.
func fairShare(lengths []int, left int) int {
	slices.Sort(lengths)
	for i, n := range lengths {
		if each := left / (len(lengths) - i); n > each {
			return each
		}
		left -= n
	}
	return math.MaxInt
}

// minFoldedRows is how many rows are left of a text at least.
const minFoldedRows = 3

// location says in one row where it runs, whom it may reach and which secrets go there, and
// behind bars what of that is not plain.
func (p *rowBuilder) location(q Question) {
	var inline []string
	type apart struct{ title, text string }
	var below []apart
	add := func(title, text string, plain bool) {
		if plain && len(text) <= maxInline {
			inline = append(inline, title+" "+text)
		} else {
			below = append(below, apart{title, text})
		}
	}
	if q.Command != "" {
		add("in", q.Dir, isPlainWord(q.Dir))
		inline = append(inline, "jail "+q.Tier.String())
	}
	if q.Network != nil && (len(q.Network) > 1 || !strings.HasPrefix(questionText(q), "Let it reach")) {
		hosts := strings.Join(q.Network, ", ")
		add("may reach", hosts, plainWords().MatchString(hosts))
	}
	for _, s := range q.Secrets {
		text := s.Name + " for " + cmp.Or(strings.Join(s.Hosts, ", "), "the hosts that it is bound to")
		add("secret", text, plainWords().MatchString(text))
	}
	for _, path := range q.Paths {
		if q.Command != "" {
			add("may read", path, isPlainWord(path))
		}
	}
	if len(inline) > 0 {
		p.own("", "  ", strings.Join(inline, ", "))
	}
	for _, a := range below {
		p.own("", "  ", a.title)
		p.text(a.text, sideRows)
	}
	for _, path := range q.Paths {
		if to := q.LeadsTo[path]; to != "" {
			p.own(terminal.Red, "  ", "what it names leads, through a symbolic link, to")
			p.text(to, sideRows)
		}
	}
}

// maxInline is how long a part of the row is that says where.
const maxInline = 60

// warnings writes what a person should know before answering.
func (p *rowBuilder) warnings(q Question) {
	if q.Warning != "" {
		p.check(q.Warning) // which may name what others have named
		p.quoted(prefixRows(alarm, terminal.Red, inRows(markedLine(q.Warning), p.v.width())), 0)
	}
	if len(q.BindingChanges) > 0 {
		p.warn("the tool is not as it was when you answered for good: ? shows what is different")
	}
	if !tool.ValidName(q.Tool) {
		p.addFinding("name", "the name of the tool is none that a tool can have")
	}
}

// Text is a text of others behind bars, for questions of another kind and for lists, all
// of it or folded.
func (v View) Text(text string, all bool) string {
	p := rowBuilder{v: v, all: all}
	p.text(text, foldRows)
	return lines(p.out)
}
