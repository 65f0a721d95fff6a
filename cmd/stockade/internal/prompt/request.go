package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/tool"
)

// arguments adds the arguments of a tool that does not run a command, in about room rows. For
// a network request, the method and URL come first, and are folded later than the body.
func (p *rowBuilder) arguments(q Question, room int) {
	rest := map[string]json.RawMessage{}
	if json.Unmarshal(q.Call.Args, &rest) != nil {
		p.text(humanize.JSON(q.Call.Args), room)
		return
	}
	take := func(name string, value any) bool {
		ok := rest[name] != nil && json.Unmarshal(rest[name], value) == nil
		if ok {
			delete(rest, name)
		}
		return ok
	}
	begin := len(p.out)
	left := func() int { return max(room-(len(p.out)-begin), sideRows) }
	var url, query, body string
	method, headers := "GET", map[string]string{}
	switch {
	case q.Tool == "http_fetch" && take("url", &url):
		take("method", &method)
		p.lines([]string{method + " " + url}, max(room/2, minFoldedRows))
		if take("headers", &headers) {
			var lines []string
			for _, name := range slices.Sorted(maps.Keys(headers)) {
				lines = append(lines, name+": "+headers[name])
			}
			p.lines(lines, max(left()/2, minFoldedRows))
		}
		take("body", &body)
	case q.Tool == "web_search" && take("query", &query):
		p.lines([]string{query}, left())
	default:
		p.text(humanize.JSON(q.Call.Args), room)
		return
	}
	if len(rest) > 0 {
		p.text("with "+string(tool.Marshal(rest)), sideRows)
	}
	if body != "" {
		p.own("", "  ", fmt.Sprintf("and sends %s", humanize.Bytes(int64(len(body)))))
		p.text(body, left())
	}
}
