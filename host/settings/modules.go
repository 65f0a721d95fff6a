package settings

import (
	"cmp"

	"github.com/stockade-dev/stockade/host/config"
)

// ModuleConfig is what the built-in modules are configured with, by their names.
func (s *Settings) ModuleConfig() map[string]map[string]string {
	web := s.Config.Web
	if web.Search == "" {
		return nil // nothing was read, because nothing is called
	}
	url := map[string]string{"duckduckgo": web.DuckDuckGoURL, "brave": web.BraveURL, "google": web.GoogleURL}[web.Search]
	own := config.Key("web." + web.Search + "_url").Example // which is in quotes
	return map[string]map[string]string{"web": {
		"search": web.Search, "search_url": cmp.Or(url, own[1:len(own)-1]), "google_cx": web.GoogleCX,
	}}
}
