package settings

import (
	"cmp"

	"github.com/stockade-dev/stockade/host/config"
)

// ModuleConfig returns the configuration of the built-in modules, by module and key.
func (s *Settings) ModuleConfig() map[string]map[string]string {
	web := s.Config.Web
	if web.Search == "" {
		return nil // the settings were not read, as no tool is called
	}
	url := func(w config.Web) string {
		return map[string]string{"duckduckgo": w.DuckDuckGoURL, "brave": w.BraveURL, "google": w.GoogleURL}[web.Search]
	}
	return map[string]map[string]string{"web": {
		"search": web.Search, "search_url": cmp.Or(url(web), url(config.Default().Web)), "google_cx": web.GoogleCX,
	}}
}
