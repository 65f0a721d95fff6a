//go:build !wasip1

package main

import (
	"testing"
	"net/url"
)

func TestTry(t *testing.T) {
	w := &window{limit: 100000}
	p := page{out: w}
	p.base, _ = url.Parse("https://a.example/x/")
	p.render([]byte(`<!doctype html><html><head><title>My &amp; page</title><style>x{}</style></head><body><nav><a href=/>home</a></nav>
<h1>Head <em>line</em></h1><p>First   para with <a href="/b?c=1">a link</a> and <a href="https://other/">another</a>.<br>Next line</p>
<ul><li>one<li><p>two</p><ul><li>nested</ul></li><li></li><li>four</li></ul><ol><li>a<li>b</ol>
<table><tr><th>H1</th><th>H2</th></tr><tr><td>1</td><td>2</td></tr><tr><td></td><td>x</td></tr></table>
<pre>
a  b
 <b>c</b>
</pre><p>after <code>x := 1</code> <img src=a alt="A cat"></p><div hidden>secret</div><dl><dt>T<dd>D</dl><h2></h2>end
<script>if (a<b) "</p>"</script><svg/>tail`))
	text, next := w.text()
	t.Logf("%s\n%d", text, next)
}
