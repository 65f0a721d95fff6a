package policyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/internal/nearest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// file is policy.toml. A pointer tells what is not there from what is empty:
// an empty list permits nothing.
type file struct {
	RequireConfirmation bool                `toml:"require_confirmation"`
	Files               *filesTable         `toml:"files"`
	Network             *networkTable       `toml:"network"`
	Models              *modelsTable        `toml:"models"`
	Modules             *modulesTable       `toml:"modules"`
	Bash                *bashTable          `toml:"bash"`
	Audit               *auditTable         `toml:"audit"`
	Limits              map[string]any      `toml:"limits"`
	Tools               map[string]toolRule `toml:"tools"`
	Rules               []ruleTable         `toml:"rules"`
}

type filesTable struct {
	Directories *[]string `toml:"directories"`
	Hidden      []string  `toml:"hidden"`
}

type networkTable struct {
	Hosts         *[]string `toml:"hosts"`
	Proxy         *string   `toml:"proxy"`
	ProxyResolves *bool     `toml:"proxy_resolves"`
	CAFiles       *[]string `toml:"ca_files"`
}

type modelsTable struct {
	Providers *[]string `toml:"providers"`
	BaseURLs  *[]string `toml:"base_urls"`
}

type modulesTable struct {
	Unsigned   *bool     `toml:"unsigned"`
	Digests    *[]string `toml:"digests"`
	Signers    *[]string `toml:"signers"`
	Namespaces *[]string `toml:"namespaces"`
}

type bashTable struct {
	MinTier int64 `toml:"min_tier"`
}

type auditTable struct {
	Required bool   `toml:"required"`
	Export   string `toml:"export"`
}

type toolRule struct {
	Allow *bool              `toml:"allow"`
	Calls *int               `toml:"calls"`
	Args  map[string]argRule `toml:"args"`
}

type argRule struct {
	Pattern *string   `toml:"pattern"`
	OneOf   *[]string `toml:"one_of"`
	Maximum *float64  `toml:"maximum"`
	Under   *[]string `toml:"under"`
	Hosts   *[]string `toml:"hosts"`
}

type ruleTable struct {
	Effect   string   `toml:"effect"`
	Tool     string   `toml:"tool"`
	Where    []string `toml:"where"`
	Risk     []string `toml:"risk"`
	Caller   []string `toml:"caller"`
	Module   string   `toml:"module"`
	Why      string   `toml:"why"`
	Match    []string `toml:"match"`
	NotMatch []string `toml:"not_match"`
}

// Parse checks the text of a policy file and returns the layer that it makes.
// path is for messages. All that cannot be meant as it stands is an error, an
// empty file too. Rules that allow are an error in an administrator's file, and
// left out of a project's with a warning: neither answers questions.
func Parse(path string, source policy.Source, data []byte) (policy.Layer, []string, error) {
	src, err := config.Source(path, data)
	if err != nil {
		return policy.Layer{}, nil, err
	}
	var f file
	meta, err := toml.Decode(src, &f)
	if err != nil {
		if parse, ok := errors.AsType[toml.ParseError](err); ok {
			return policy.Layer{}, nil, &config.Error{Path: path, Line: parse.Position.Line, What: parse.Message}
		}
		return policy.Layer{}, nil, &config.Error{Path: path, What: err.Error()}
	}
	unknown := slices.DeleteFunc(meta.Undecoded(), func(k toml.Key) bool { return k[0] == "limits" }) // checked below
	if len(unknown) > 0 {
		return policy.Layer{}, nil, &config.Error{Path: path, Key: unknown[0].String(),
			What: fmt.Sprintf("unknown key %.80q%s", unknown[0].String(), nearest.Hint(unknown[0].String(), Keys()))}
	}
	if len(meta.Keys()) == 0 {
		return policy.Layer{}, nil, &config.Error{Path: path, What: "it is empty, and a policy that says nothing is more likely lost than meant; remove the file, or write require_confirmation = false"}
	}
	if n := f.patterns(); n > maxPatterns {
		return policy.Layer{}, nil, &config.Error{Path: path, What: fmt.Sprintf("it has %d regular expressions, more than %d", n, maxPatterns)}
	}
	r := &reader{path: path, source: source, layer: policy.Layer{Source: source, Path: path}, lines: ruleLines(src)}
	r.file(&f)
	if len(r.errs) > 0 {
		return policy.Layer{}, nil, errors.Join(r.errs...)
	}
	return r.layer, r.warnings, nil
}

// maxPatterns is how many regular expressions a file may hold, because each costs
// memory and is held against calls. A project's file can be anybody's.
const maxPatterns = 100

func (f *file) patterns() int {
	n := 0
	for _, t := range f.Tools {
		for _, a := range t.Args {
			if a.Pattern != nil {
				n++
			}
		}
	}
	for _, r := range f.Rules {
		for _, text := range r.Where {
			if strings.HasPrefix(strings.TrimPrefix(text, "!"), string(match.Pattern)+":") {
				n++
			}
		}
	}
	return n
}

var ruleHead = regexp.MustCompile(`^\s*\[\[\s*rules\s*\]\]`)

// ruleLines are the lines on which rules begin.
func ruleLines(src string) []int {
	var out []int
	for i, line := range strings.Split(src, "\n") {
		if ruleHead.MatchString(line) {
			out = append(out, i+1)
		}
	}
	return out
}

type reader struct {
	path     string
	source   policy.Source
	layer    policy.Layer
	lines    []int
	warnings []string
	errs     []error
}

func (r *reader) fail(key, format string, args ...any) {
	if len(r.errs) < 10 {
		r.errs = append(r.errs, &config.Error{Path: r.path, Key: key, What: key + ": " + fmt.Sprintf(format, args...)})
	}
}

func (r *reader) from(key string) policy.From {
	return policy.From{Source: r.source, Origin: r.path + ": " + key}
}

func (r *reader) file(f *file) {
	c := &r.layer.Ceiling
	if f.RequireConfirmation {
		c.Confirm = []policy.Line{{From: r.from("require_confirmation")}}
	}
	if t := f.Files; t != nil {
		r.list(&c.Directories, "files.directories", t.Directories, directory)
		for _, name := range t.Hidden {
			if err := plainPath(name); err != nil {
				r.fail("files.hidden", "%v", err)
			}
			if strings.ContainsAny(name, `[]{}?\`) {
				r.warnings = append(r.warnings, fmt.Sprintf("%s: files.hidden: %q is the one path of exactly that name: no letter of it stands for others", r.path, name))
			}
			c.Hidden = append(c.Hidden, policy.Line{Value: name, From: r.from("files.hidden")})
		}
	}
	if t := f.Network; t != nil {
		r.list(&c.Hosts, "network.hosts", t.Hosts, hostPattern)
		r.route(t)
	}
	if t := f.Models; t != nil {
		r.list(&c.Providers, "models.providers", t.Providers, word)
		r.list(&c.BaseURLs, "models.base_urls", t.BaseURLs, baseURL)
	}
	if t := f.Modules; t != nil {
		r.modules(t)
	}
	if t := f.Bash; t != nil {
		if t.MinTier < 0 || t.MinTier > int64(policy.MaxTier) {
			r.fail("bash.min_tier", "%d is no tier; they go from 0 to %d", t.MinTier, policy.MaxTier)
		} else if t.MinTier > 0 {
			c.MinTier = &policy.Most{Value: t.MinTier, From: r.from("bash.min_tier")}
		}
	}
	if t := f.Audit; t != nil && (t.Required || t.Export != "") {
		if !t.Required {
			r.fail("audit.export", "it says where what is required goes; set audit.required = true as well")
		} else if t.Export != "" && plainPath(t.Export) != nil {
			r.fail("audit.export", "%v", plainPath(t.Export))
		}
		c.AuditExports = []policy.Line{{Value: t.Export, From: r.from("audit")}}
	}
	r.limits("limits", "", f.Limits)
	r.tools(f.Tools)
	for i := range f.Rules {
		r.rule(i, &f.Rules[i], len(f.Rules))
	}
	// In the order and form of every other ceiling.
	*c = policy.Narrow(*c, *c)
}

// list adds a list that is there; an empty one permits nothing.
func (r *reader) list(to *[]policy.List, key string, values *[]string, check func(string) error) {
	if values == nil {
		return
	}
	for _, v := range *values {
		if err := check(v); err != nil {
			r.fail(key, "%v", err)
		}
	}
	*to = append(*to, policy.List{Values: slices.Sorted(slices.Values(*values)), From: r.from(key)})
}

// maxCAFiles is that of agent.toml.
const maxCAFiles = 64

// route reads how the network is reached. Whoever says that can read what goes
// through it, so that a file which came with a project has no say, and the user's
// place for it is agent.toml.
func (r *reader) route(t *networkTable) {
	for _, k := range []struct {
		name string
		set  bool
	}{{"proxy", t.Proxy != nil}, {"proxy_resolves", t.ProxyResolves != nil}, {"ca_files", t.CAFiles != nil}} {
		if k.set && r.source != policy.SourceAdmin {
			r.fail("network."+k.name, "only the administrator binds others to it; your own is network.%s in your agent.toml", k.name)
			return
		}
	}
	if t.Proxy != nil {
		scratch := config.Default()
		err := scratch.Set("network.proxy", *t.Proxy, "")
		if err == nil && *t.Proxy == "" {
			err = errors.New("it is empty; leave it out to let everybody choose")
		}
		if err != nil {
			r.fail("network.proxy", "%v", err)
		}
		r.layer.Route.Proxy = &policy.Proxy{URL: *t.Proxy, Resolves: t.ProxyResolves != nil && *t.ProxyResolves, From: r.from("network.proxy")}
	} else if t.ProxyResolves != nil {
		r.fail("network.proxy_resolves", "it says how network.proxy is asked, which is not there")
	}
	if t.CAFiles == nil {
		return
	}
	if n := len(*t.CAFiles); n == 0 || n > maxCAFiles {
		r.fail("network.ca_files", "it names %d files; name 1 to %d, or leave it out", n, maxCAFiles)
	}
	for _, name := range *t.CAFiles {
		if !filepath.IsAbs(name) || filepath.Clean(name) != name || strings.ContainsRune(name, 0) {
			r.fail("network.ca_files", "%.80q is not an absolute path without dots and a slash at its end", name)
		}
		r.layer.Route.CAFiles = append(r.layer.Route.CAFiles, policy.Line{Value: name, From: r.from("network.ca_files")})
	}
}

func (r *reader) modules(t *modulesTable) {
	if t.Unsigned != nil && !*t.Unsigned {
		r.layer.Ceiling.Signed = []policy.Line{{From: r.from("modules.unsigned")}}
	}
	if t.Digests == nil && t.Signers == nil && t.Namespaces == nil {
		return
	}
	l := policy.ModuleList{From: r.from("modules")}
	for _, part := range []struct {
		key   string
		from  *[]string
		to    *[]string
		check func(string) (string, error)
	}{
		{"modules.digests", t.Digests, &l.Digests, digest},
		{"modules.signers", t.Signers, &l.Signers, func(s string) (string, error) { return s, word(s) }},
		{"modules.namespaces", t.Namespaces, &l.Namespaces, func(s string) (string, error) { return s, word(s) }},
	} {
		if part.from == nil {
			continue
		}
		for _, v := range *part.from {
			v, err := part.check(v)
			if err != nil {
				r.fail(part.key, "%v", err)
			}
			*part.to = append(*part.to, v)
		}
		slices.Sort(*part.to)
	}
	r.layer.Ceiling.Modules = []policy.ModuleList{l}
}

// limits reads the keys of agent.toml, in its tables.
func (r *reader) limits(key, prefix string, table map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		v, full := table[name], prefix+name
		if below, ok := v.(map[string]any); ok && prefix == "" {
			r.limits(key+"."+name, name+".", below)
			continue
		}
		if !slices.Contains(config.LimitKeys(), full) {
			r.fail(key+"."+name, "there is no such limit%s", nearest.Hint(full, config.LimitKeys()))
			continue
		}
		most, text, err := config.Most(full, v)
		if err != nil {
			r.fail(key+"."+name, "%v", err)
			continue
		}
		if r.layer.Ceiling.Limits == nil {
			r.layer.Ceiling.Limits = map[string]policy.Most{}
		}
		r.layer.Ceiling.Limits[full] = policy.Most{Value: most, Text: text, From: r.from(key + "." + name)}
	}
}

func directory(s string) error {
	dir, _ := strings.CutSuffix(s, ":ro")
	if strings.Contains(dir, "**") {
		return fmt.Errorf("%.80q: a directory covers all that is in it; leave ** out", s)
	}
	_, err := match.NewCondition(match.Path, "directory", dir, false)
	return err
}

func plainPath(s string) error {
	if !path.IsAbs(s) || path.Clean(s) != s || strings.ContainsAny(s, "*\x00") {
		return fmt.Errorf("%.80q is not an absolute path without stars, dots and a slash at its end", s)
	}
	return nil
}

func hostPattern(s string) error {
	_, err := match.NewCondition(match.Hostname, "host", s, false)
	return err
}

func word(s string) error {
	if s == "" || len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%.80q is not one word", s)
	}
	return nil
}

func baseURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New(`an entry is not an address such as "https://host/v1", nor "" for the provider's own`)
	}
	return nil
}

var digestRE = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

func digest(s string) (string, error) {
	if !digestRE.MatchString(s) {
		return "", fmt.Errorf(`%.80q is not "sha256:" and 64 hexadecimal digits in lower case`, s)
	}
	return strings.TrimPrefix(s, "sha256:"), nil
}

// tools makes rules of what is said of single tools: all of them deny.
func (r *reader) tools(tools map[string]toolRule) {
	var except []string
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if name != policy.AnyTool && !tool.ValidName(name) {
			r.fail("tools."+strconv.Quote(name), "that is not the name of a tool")
			continue
		}
		if t := tools[name]; t.Allow != nil && *t.Allow && name != policy.AnyTool {
			except = append(except, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		t := tools[name]
		key := "tools." + name
		deny := func(key string) policy.Rule {
			return policy.Rule{Effect: policy.Deny, Tool: name, Source: r.source, Origin: r.path + ": " + key}
		}
		if t.Allow != nil && !*t.Allow {
			rule := deny(key + ".allow")
			if name == policy.AnyTool {
				rule.Except = except
			}
			r.add(key, rule)
		}
		if t.Calls != nil {
			rule := deny(key + ".calls")
			if rule.After = *t.Calls; rule.After < 1 {
				r.fail(key+".calls", "%d is not a number of calls, at least 1; to have none, set allow = false", rule.After)
			} else {
				r.add(key+".calls", rule)
			}
		}
		for _, arg := range slices.Sorted(maps.Keys(t.Args)) {
			r.argument(key+".args."+arg, arg, t.Args[arg], deny)
		}
	}
}

// argument makes rules that deny what does not fit.
func (r *reader) argument(key, arg string, a argRule, deny func(string) policy.Rule) {
	if a == (argRule{}) {
		r.fail(key, "it says nothing of the argument: pattern, one_of, maximum, under or hosts")
	}
	unless := func(what string, kind match.Kind, values ...string) {
		rule := deny(key + "." + what)
		if len(values) == 0 { // an empty list: no value fits
			kind, values = match.OneOf, []string{"[]"}
		}
		for _, v := range values {
			c, err := match.NewCondition(kind, arg, v, true)
			if err != nil {
				r.fail(key+"."+what, "%v", err)
				return
			}
			rule.Where = append(rule.Where, c)
		}
		r.add(key+"."+what, rule)
	}
	if a.Pattern != nil {
		unless("pattern", match.Pattern, *a.Pattern)
	}
	if a.OneOf != nil {
		list, err := json.Marshal(*a.OneOf)
		if err != nil {
			r.fail(key+".one_of", "%v", err)
			return
		}
		unless("one_of", match.OneOf, string(list))
	}
	if a.Maximum != nil {
		unless("maximum", match.Maximum, strconv.FormatFloat(*a.Maximum, 'g', -1, 64))
	}
	if a.Under != nil {
		unless("under", match.Path, *a.Under...)
	}
	if a.Hosts != nil {
		unless("hosts", match.Hostname, *a.Hosts...)
	}
}

// add adds a rule that narrows.
func (r *reader) add(key string, rule policy.Rule) {
	if err := rule.Check(); err != nil {
		r.fail(key, "%v", err)
		return
	}
	r.layer.Ceiling.Rules = append(r.layer.Ceiling.Rules, rule)
}

var effects = map[string]policy.Effect{"allow": policy.Allow, "ask": policy.Ask, "deny": policy.Deny}
var risks = map[string]policy.Risk{"safe": policy.RiskSafe, "medium": policy.RiskMedium, "high": policy.RiskHigh}
var callers = map[string]tool.Caller{"agent": tool.CallerAgent, "person": tool.CallerPerson, "mcp": tool.CallerMCP}

func (r *reader) rule(i int, t *ruleTable, n int) {
	key := fmt.Sprintf("rule %d", i+1)
	line := 0
	if len(r.lines) == n {
		line = r.lines[i]
	}
	fail := func(format string, args ...any) {
		r.errs = append(r.errs, &config.Error{Path: r.path, Line: line, Key: key, What: key + ": " + fmt.Sprintf(format, args...)})
	}
	effect, ok := effects[t.Effect]
	if !ok {
		fail(`effect is %.40q; it is "allow", "ask" or "deny"`, t.Effect)
		return
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"where", t.Where}, {"risk", t.Risk}, {"caller", t.Caller}, {"match", t.Match}, {"not_match", t.NotMatch}} {
		if l.list != nil && len(l.list) == 0 {
			fail("%s is an empty list, which would mean none; leave it out to mean any", l.name)
			return
		}
	}
	rule := policy.Rule{Effect: effect, Tool: t.Tool, Source: r.source, Why: t.Why, Origin: r.path}
	if line > 0 {
		rule.Origin = fmt.Sprintf("%s:%d", r.path, line)
	}
	for _, text := range t.Where {
		c, err := match.ParseCondition(text)
		if err != nil {
			fail("%v", err)
			return
		}
		rule.Where = append(rule.Where, c)
	}
	for _, word := range t.Risk {
		risk, ok := risks[word]
		if !ok {
			fail(`risk holds %.40q; it is "safe", "medium" or "high"`, word)
			return
		}
		rule.Risks = append(rule.Risks, risk)
	}
	for _, word := range t.Caller {
		caller, ok := callers[word]
		if !ok {
			fail(`caller holds %.40q; it is "agent", "person" or "mcp"`, word)
			return
		}
		rule.Callers = append(rule.Callers, caller)
	}
	if t.Module != "" && t.Module != string(tool.OriginBuiltin) {
		hex, err := digest(t.Module)
		if err != nil {
			fail(`module: %v, nor "builtin"`, err)
			return
		}
		t.Module = "sha256:" + hex
	}
	rule.Bound.Module = t.Module
	if err := errors.Join(rule.Check(), rule.Examples(t.Match, t.NotMatch)); err != nil {
		fail("%v", err)
		return
	}
	switch {
	case effect != policy.Allow:
		r.layer.Ceiling.Rules = append(r.layer.Ceiling.Rules, rule)
	case r.source == policy.SourceUser:
		r.layer.Answers = append(r.layer.Answers, rule)
	case r.source == policy.SourceAdmin:
		fail("an administrator's file says what is permitted at most, and answers no questions: effect is \"deny\" or \"ask\"")
	default:
		r.warnings = append(r.warnings, fmt.Sprintf("%s: the rule %q is ignored: only you can allow, with your own policy.toml or --allow", rule.Origin, rule))
	}
}
