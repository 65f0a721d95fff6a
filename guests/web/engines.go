package main

import (
	"bytes"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// maxAPIError limits the characters of an engine's error message in ours; the rest is cut.
const maxAPIError = 200

// apiError returns ": " and the error message in an answer of an API; empty: there is none.
func apiError(body []byte) string {
	var answer struct {
		Error struct{ Code, Detail, Message any }
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	var words []string
	for _, v := range []any{answer.Error.Code, answer.Error.Detail, answer.Error.Message} {
		if s, ok := v.(string); ok && s != "" {
			words = append(words, s)
		}
	}
	if words == nil {
		return ""
	}
	return ": " + short(strings.Join(words, ": "), maxAPIError)
}

func badAnswer(engine string, err error) error {
	return tool.Coded("BAD_RESPONSE", tool.Parse("what %s answered is no list of results: %w; try again later, or tell the person to set another engine in [web] of agent.toml", engine, err))
}

func readBrave(body []byte) ([]result, error) {
	var answer struct {
		Web struct {
			Results []struct{ Title, URL, Description string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, badAnswer("Brave", err)
	}
	var out []result
	for _, r := range answer.Web.Results {
		out = append(out, result{textOf(r.Title), r.URL, textOf(r.Description)})
	}
	return out, nil
}

func readGoogle(body []byte) ([]result, error) {
	var answer struct {
		Items []struct{ Title, Link, Snippet string }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, badAnswer("Google", err)
	}
	var out []result
	for _, r := range answer.Items {
		out = append(out, result{r.Title, r.Link, r.Snippet})
	}
	return out, nil
}

// readDuckDuckGo returns the results in DuckDuckGo's page for browsers without scripts.
func readDuckDuckGo(body []byte) ([]result, error) {
	var out []result
	var r result
	isAd, none := false, false
	done := func() {
		if r.URL != "" && !isAd {
			out = append(out, r)
		}
		r = result{}
	}
	s := scanner{src: body}
	for {
		t := s.next()
		if t.kind == endToken {
			break
		}
		if t.kind != openToken {
			continue
		}
		switch classes := classesOf(t); {
		case slices.Contains(classes, "result"):
			done()
			isAd = slices.Contains(classes, "result--ad")
		case slices.Contains(classes, "result__a"):
			if r.URL != "" {
				done()
			}
			href, _ := t.attribute("href")
			r.URL = behindRedirect(html.UnescapeString(string(href)))
			r.Title = s.innerText(t.name)
		case slices.Contains(classes, "result__snippet"):
			r.Snippet = s.innerText(t.name)
		case slices.Contains(classes, "no-results"):
			none = true
		}
	}
	done()
	if out == nil && !none {
		return nil, tool.Coded("BAD_RESPONSE", tool.Parse("what DuckDuckGo answered is no page of results; perhaps it looks different now: try again later, or tell the person to set another engine in [web] of agent.toml"))
	}
	return out, nil
}

// isBlocked reports whether a page of DuckDuckGo asks for proof that a person is there.
func isBlocked(body []byte) bool {
	s := scanner{src: body}
	for {
		t := s.next()
		switch {
		case t.kind == endToken:
			return false
		case t.kind != openToken:
			continue
		}
		if slices.ContainsFunc(classesOf(t), func(c string) bool { return strings.HasPrefix(c, "anomaly") }) {
			return true
		}
		if id, _ := t.attribute("id"); bytes.Equal(id, []byte("challenge-form")) {
			return true
		}
	}
}

func classesOf(t token) []string {
	class, _ := t.attribute("class")
	return strings.Fields(string(class[:min(len(class), maxAttribute)]))
}

// behindRedirect returns the URL to which a link of DuckDuckGo leads; "" for an advertisement
// or a faulty link.
func behindRedirect(href string) string {
	if strings.HasPrefix(href, "//") {
		href = "https:" + href
	}
	u, err := url.Parse(href)
	if err != nil {
		return ""
	}
	if u.Host == "" || u.Host == "duckduckgo.com" || strings.HasSuffix(u.Host, ".duckduckgo.com") {
		if u.Path == "/y.js" {
			return ""
		}
		if to := u.Query().Get("uddg"); to != "" {
			return to
		}
	}
	return href
}

// innerText returns the text up to the end of an element whose start tag was read, or for an
// unknown element up to the end of the document; of a long text only the beginning.
func (s *scanner) innerText(name element) string {
	var b strings.Builder
	for b.Len() < 4*maxSnippet {
		t := s.next()
		if t.kind == endToken || t.kind == closeToken && t.name == name && name != 0 { // an end tag of an unknown element may be another element's
			break
		}
		if t.kind == textToken {
			b.WriteString(html.UnescapeString(string(t.text[:min(len(t.text), 4*maxSnippet)])))
		}
	}
	return b.String()
}

func textOf(source string) string {
	s := scanner{src: []byte(source)}
	return s.innerText(0)
}
