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

// Question is a question of the policy, with facts that the host has added.
type Question struct {
	policy.Question
	// LeadsTo maps a path to the path that its symbolic links lead to. Paths without symbolic
	// links are not in it.
	LeadsTo map[string]string

	diffs map[int]*diff.Text // differences that the first rows show, by the index of their change
}

// ForCall returns the prompt about one call.
func ForCall(q Question) *Prompt {
	q = q.withDiffs()
	p := &Prompt{
		question: questionText(q), recap: headline(q), yesReply: "allowed", noReply: "not allowed",
		subject:  q.Tool,
		details:  func(v View) []string { return details(v, q) },
		fullText: (&fullText{qs: []Question{q}}).page,
	}
	p.rows = func(v View, room int) ([]string, bool) {
		b := rowBuilder{v: v}
		b.question(q, "", room)
		p.warned = b.warned
		return b.fit(room)
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
		if !slices.Contains(q.Scopes, s.scope) || s.scope == policy.ScopeSession && q.Histories != nil { // "y" lasts for the session already
			continue
		}
		covers := s.covers(q)
		if s.scope == policy.ScopeSession && q.CoversLikeCommands {
			covers = "commands like this"
		}
		c := Choice{Letter: s.letter, Label: covers + s.words, scope: s.scope, rule: s.as + ": " + covers}
		if s.scope == policy.ScopeSession || q.Histories != nil {
			p.choices = append(p.choices, c)
		} else {
			p.moreChoices = append(p.moreChoices, c)
		}
	}
	if slices.Contains(q.Scopes, policy.ScopeFree) {
		p.choices = append(p.choices, freeChoice)
	}
	p.choices = append(p.choices, Choice{Letter: 'n', Label: "no"})
	if q.Histories != nil {
		return p
	}
	if q.Call.Caller == tool.CallerAgent {
		p.sideChoices = append(p.sideChoices, Choice{Letter: keyWhy, Label: "no, because", reply: p.noReply, details: "opens a line; the model gets it as your words"})
	}
	if q.Command != "" && q.Changes != nil && !nothingChanged(q) && !q.Failed {
		p.sideChoices = append(p.sideChoices, Choice{Letter: keyOutput, Label: "only its output", reply: "not kept, but its output is", details: "its changes are dropped, and what it has written is given out"})
	}
	if q.CallsAfter > 0 {
		p.sideChoices = append(p.sideChoices, Choice{Letter: keyQuit, Label: fmt.Sprintf("no to this and %d more", q.CallsAfter), reply: p.noReply + ", nor is any call after it", details: "no other call of this reply is run"})
	}
	return p
}

// freeChoice is the answer [policy.ScopeFree].
var freeChoice = Choice{Letter: 'w', Label: "all changes below ./" + thisSession, scope: policy.ScopeFree, rule: "for this session: all changes below this directory"}

// Keys of the kinds of no.
const (
	keyWhy    = 'r' // with a reason, which the model gets
	keyOutput = 'x' // the changes of a command are dropped, its output is given out
	keyQuit   = 'q' // also to the rest of the step
)

// scopes lists the answers that hold for more than one call, in the order in which a question
// offers them.
var scopes = []struct {
	scope  policy.Scope
	letter rune
	words  string // duration in words, after the result of covers
	as     string // duration in words, after "allowed"
	covers func(q Question) string
}{
	{policy.ScopeTurn, 't', ", this turn", "for this turn", coverage},
	{policy.ScopeSession, 's', thisSession, "for this session", coverage},
	{policy.ScopeProject, 'p', ", kept for this workspace", "in this workspace", coverage},
	{policy.ScopeAlways, 'a', ", kept for all workspaces", "from now on", coverage},
	{policy.ScopeBelow, 'b', thisSession, "for this session", coverageBelow},
	{policy.ScopeKeepBelow, 'k', ", kept", "from now on", coverageBelow},
}

// coverage describes the calls that an answer for more than one call covers, in short. The
// text of its rule is exact.
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

// keyOneByOne is the key with which a person answers each call of a batch separately.
const keyOneByOne = 'e'

// answeredBy is the name with which the session records an answer at a prompt.
const answeredBy = "terminal"

// Policy returns the answer that the choice is.
func (c Choice) Policy() policy.Answer {
	return policy.Answer{
		Allow: c.scope != "", Scope: c.scope, By: answeredBy,
		Because: c.because, OutputOnly: c.Letter == keyOutput, RestOfStep: c.Letter == keyQuit,
	}
}

// forCalls returns the prompt about several calls. It offers a yes to all only if everything
// about each call is on the screen, and [policy.ScopeFree] if each of them offers it, too.
func forCalls(qs []Question) *Prompt {
	qs = slices.Clone(qs)
	for i := range qs {
		qs[i] = qs[i].withDiffs()
	}
	p := &Prompt{
		question: "Allow them?", recap: fmt.Sprintf("%d calls", len(qs)), yesNeedsAll: true, yesReply: "allowed", noReply: "none of them is allowed",
		choices: []Choice{
			{Letter: 'y', Label: fmt.Sprintf("yes to all %d, shown in full above", len(qs)), scope: policy.ScopeOnce},
			{Letter: keyOneByOne, Label: "one by one"},
			{Letter: 'n', Label: "no to all"},
		},
		rows: func(v View, room int) ([]string, bool) {
			p := rowBuilder{v: v}
			p.own(terminal.Bold, "  ", fmt.Sprintf("%d calls wait for an answer", len(qs)))
			each := max((room-1)/len(qs), 5)
			for i, q := range qs {
				p.question(q, fmt.Sprintf("%d. ", i+1), max(each, room-len(p.out)-each*(len(qs)-1-i)))
				p.folded = p.folded || len(q.BindingChanges) > 0 // "?" shows the differences
			}
			return p.fit(room)
		},
	}
	if !slices.ContainsFunc(qs, func(q Question) bool { return q.Call.Caller != tool.CallerAgent }) {
		p.sideChoices = []Choice{{Letter: keyWhy, Label: "no, because", reply: p.noReply}}
	}
	if !slices.ContainsFunc(qs, func(q Question) bool { return !slices.Contains(q.Scopes, policy.ScopeFree) }) {
		p.choices, p.yesReply = slices.Insert(p.choices, 2, freeChoice), "kept"
	}
	p.separable = !slices.ContainsFunc(qs, func(q Question) bool { return !q.Tried })
	p.details = func(v View) (out []string) {
		for i, q := range qs {
			out = append(append(out, v.ownRows(terminal.Bold, "  ", fmt.Sprintf("%d. %s", i+1, headline(q)))...), details(v, q)...)
		}
		return out
	}
	p.fullText = (&fullText{qs: qs}).page
	return p
}

// questionText returns the question itself, such as "Run it?".
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

// soleHost returns the only host that a call of a tool would reach. It is empty if there are
// several or none, or if the name is too long or not plain enough for a row of ours.
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

// nothingChanged reports whether the call has run and changed nothing: the answer only decides
// about its result.
func nothingChanged(q Question) bool { return q.Changes != nil && q.Changes.Empty() }

// headline names the tool and its action in a row of ours. It contains text of others only if
// the text is plain.
func headline(q Question) string {
	change, _ := q.singleChange()
	switch {
	case q.Histories != nil:
		return "the history of git holds files that look like secrets"
	case q.Changes == nil:
		return humanize.ToolName(q.Tool) + " wants to run"
	case q.Command != "" || nothingChanged(q):
		return humanize.ToolName(q.Tool) + " has run"
	case change != "":
		return humanize.ToolName(q.Tool) + "  " + change
	}
	return humanize.ToolName(q.Tool) + " wants to keep its changes"
}

// rowBuilder collects the rows of a question.
type rowBuilder struct {
	v      View
	all    bool // set if nothing is folded
	folded bool
	warned bool // set if a row is a warning
	first  int  // number of rows at the beginning that fit folds last
	spoofCheck
	out []string
}

// fit folds the middle of all rows if they do not fit into room rows. The second result
// reports whether rows are folded.
func (p *rowBuilder) fit(room int) ([]string, bool) {
	const least = 6 // with fewer rows the question would be lost
	room = max(room, least)
	if len(p.out) <= room {
		return p.out, p.folded
	}
	note := func(rows int) []row { return notes(p.v.width(), "%d rows are folded", rows) }
	left := max(room-len(note(len(p.out))), 0) // rows that stay
	head := max(left/2, min(p.first, left-2))
	return slices.Concat(p.out[:head], p.v.rows(note(len(p.out)-left)), p.out[len(p.out)-left+head:]), true
}

// own adds a text of ours, in as many rows as it needs, each with the indentation indent.
func (p *rowBuilder) own(style, indent, text string) {
	p.out = append(p.out, p.v.ownRows(style, indent, text)...)
}

// quoted adds rows behind bars, folded to maxRows; 0: all rows.
func (p *rowBuilder) quoted(rows []row, maxRows int) {
	cut := false
	if !p.all && maxRows > 0 {
		rows, cut = folded(rows, maxRows, p.v.width())
	}
	p.folded = p.folded || cut
	p.out = append(p.out, p.v.rows(rows)...)
}

// text adds a text of others, folded to maxRows.
func (p *rowBuilder) text(text string, maxRows int) {
	p.lines(strings.Split(text, "\n"), maxRows)
}

// lines adds texts of others, one line each, folded to maxRows.
func (p *rowBuilder) lines(texts []string, maxRows int) {
	p.check(strings.Join(texts, "\n"))
	p.quoted(gutter(texts, p.v.width()), maxRows)
}

// titled adds a title of ours with a text of others; nothing if the text is empty. The text
// stands after the title if it is plain and fits, and otherwise below it, behind bars.
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

// warn adds a warning of ours.
func (p *rowBuilder) warn(text string) {
	p.warned = true
	p.quoted(prefixRows(alarm, terminal.Red, terminal.Wrap(text, Room(p.v.width()))), 0)
}

// findings adds warnings about deceptive characters in the texts of others.
func (p *rowBuilder) findings() {
	for _, found := range p.found {
		p.warn(found)
	}
}

// plainWords matches text of others that may stand in a row of ours, because nobody can
// mistake it for a key or a quotation.
var plainWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._/:,;'@+*~-]+( [A-Za-z0-9._/:,;'@+*~-]+)*$`)
})

// isPlainWord reports whether text may stand as a word in a row of ours.
func isPlainWord(text string) bool {
	return plainWords().MatchString(text) && !strings.Contains(text, " ")
}

// question adds everything that a person needs to answer one question, in at most room rows.
// number stands before it in a batch.
func (p *rowBuilder) question(q Question, number string, room int) {
	p.spoofCheck = spoofCheck{}
	begin := len(p.out)
	p.head(q, number)
	// The rows after the texts are counted first: the texts get the remaining rows.
	end := rowBuilder{v: p.v}
	end.location(q)
	end.warnings(q)
	p.body(q, max(room-(len(p.out)-begin)-len(end.out), 3))
	p.location(q)
	p.warnings(q)
	p.findings()
}

// head adds the headline: the tool and its action, the reason for asking, and the numbers of
// changed lines.
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

// rightAligned adds a line of ours, with the text right at its right end.
func (p *rowBuilder) rightAligned(style, text, right string) {
	if space := min(p.v.width(), maxBeside) - 1 - len("  ") - len(text) - len(right); right != "" && space > 1 {
		text += strings.Repeat(" ", space) + right
		p.out = append(p.out, p.v.style(style, "  "+text))
		return
	}
	p.own(style, "  ", strings.TrimSpace(text+" "+right))
}

// maxBeside limits the column where that text ends: an eye cannot follow a longer row.
const maxBeside = 100

// askReason returns the reason for asking in a few words of ours. It is empty if the reason is
// obvious or needs more words.
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

// maxReason limits a reason in the headline, in bytes; a longer one is not shown there.
const maxReason = 100

// body adds the text that would run and the changes that would be made, in about room rows.
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
	change, counts := q.singleChange()
	switch {
	case q.Command == "":
	case change != "":
		p.rightAligned("", change, counts)
	default:
		p.own("", "  ", "it would change")
	}
	p.changes(q, change != "", left())
}

// histories adds the findings in the histories of repositories. left returns the number of
// rows that remain.
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

// nothingChangedText is the text about a call without changes; true: for a failed call.
var nothingChangedText = map[bool]string{false: "it has changed nothing", true: "it has changed nothing: the call has failed"}

// withDiffs returns q with the differences that its first rows show.
func (q Question) withDiffs() Question {
	if q.Changes != nil && q.diffs == nil {
		q.diffs = shownDiffs(q.Changes)
	}
	return q
}

// minLead is the least number of lines about changes that are shown if there are many changes.
const minLead = 10

// changes adds the changes in about maxRows rows: first those that nobody may overlook, which are
// never folded, then the others, each with its difference. Too few rows lose unchanged lines
// first, and titles last. With titled, a line of ours stands above them.
func (p *rowBuilder) changes(q Question, titled bool, maxRows int) {
	var items []changeItem
	for _, t := range q.Changes.SummaryLines(max(maxRows-2, minLead)) {
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
	rows := p.itemRows(items, titled, maxRows)
	first := slices.Concat(rows[:rest]...)
	p.quoted(first, 0)
	if rest > 0 {
		p.first = len(p.out)
	}
	p.quoted(slices.Concat(rows[rest:]...), max(maxRows-len(first), minFoldedRows))
	hidden := 0
	for _, t := range q.diffs {
		hidden += t.Hidden
	}
	if hidden > 0 {
		p.warn(hiddenLinesText(hidden))
	}
}

// hiddenLinesText counts lines of a difference that are not shown because they hold a secret.
func hiddenLinesText(lines int) string {
	if lines == 1 {
		return "1 line of it holds a known secret, which is not shown"
	}
	return fmt.Sprintf("%d lines of it hold a known secret, which is not shown", lines)
}

// itemRows returns the rows of each item, with as much of all differences as fits into
// maxRows.
func (p *rowBuilder) itemRows(items []changeItem, titled bool, maxRows int) [][]row {
	width, left, total := p.v.width(), maxRows, 0
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
	counted := func(n int) bool { // its rows are counted in a row below instead
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
		rows[last] = append(rows[last], notes(width, "the changes in %d of %d files are folded", hidden, files)...)
		p.folded = true
	}
	return rows
}

// maxTitle limits the rows of one item's title; the rest is folded.
const maxTitle = 4

// title returns the rows of an item without its difference, with the numbers of added and
// removed lines.
func (p *rowBuilder) title(i changeItem) []row {
	words := i.Words
	if c := counts(i.textDiff); c != "" {
		words += "  " + c
	}
	rows := rowsOf("", words, "", p.v.width())
	if i.NotShown {
		p.warned = true
		rows = prefixRows(alarm, terminal.Red, inRows(markedLine(words), p.v.width()))
	}
	if p.all {
		return rows
	}
	rows, cut := folded(rows, maxTitle, p.v.width())
	p.folded = p.folded || cut
	return rows
}

// sharesOf returns the largest number of rows that a difference may take, for each group of
// items, see [changeItem.group]. left is the number of rows for all of texts. Each new file
// gets a few rows for certain, unless this takes more than half of all rows.
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

// fairShare returns the largest number of rows that each text may take if all together have
// left rows. lengths are the rows that the texts have.
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

// minFoldedRows is the least number of rows that a folded text keeps.
const minFoldedRows = 3

// location adds a row with the directory of a call, the hosts that it can reach, and its
// secrets. Parts that are long or not plain stand below the row, behind bars.
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
		inline = append(inline, fmt.Sprintf("jail %s of %d", q.Tier, policy.MaxTier))
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
			p.own(terminal.Red, "  ", "through a symbolic link, its path leads to")
			p.text(to, sideRows)
		}
	}
}

// maxInline limits the length of a part in that row, in bytes; a longer part stands below it.
const maxInline = 60

// warnings adds all warnings that a person needs before answering.
func (p *rowBuilder) warnings(q Question) {
	if q.Warning != "" {
		p.warned = true
		p.check(q.Warning) // it may contain names that others have chosen
		p.quoted(prefixRows(alarm, terminal.Red, inRows(markedLine(q.Warning), p.v.width())), 0)
	}
	if len(q.BindingChanges) > 0 {
		p.warn("the tool has changed since you answered for good: ? shows the differences")
	}
	if !tool.ValidName(q.Tool) {
		p.addFinding("name", "the name of the tool is not one that a tool can have")
	}
}

// Text returns a text of others in rows behind bars, for lists and for questions that are not
// about calls. It is folded unless all is set.
func (v View) Text(text string, all bool) string {
	p := rowBuilder{v: v, all: all}
	p.text(text, foldRows)
	return lines(p.out)
}
