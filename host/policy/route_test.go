package policy

import "testing"

func TestOnlyTheAdministratorsRouteCounts(t *testing.T) {
	route := func(url string) Route { return Route{Proxy: &Proxy{URL: url}, CAFiles: []Setting{{Value: url}}} }
	var others []Layer
	for _, s := range authority {
		if s != SourceAdmin {
			others = append(others, Layer{Source: s, Route: route(string(s))})
		}
	}
	if r := RouteOf(others); r.Proxy != nil || r.CAFiles != nil {
		t.Errorf("without an administrator's it is %+v", r)
	}
	if r := RouteOf(append(others, Layer{Source: SourceAdmin, Route: route("ours")})); r.Proxy.URL != "ours" || r.CAFiles[0].Value != "ours" {
		t.Errorf("it is %+v", r)
	}
}
