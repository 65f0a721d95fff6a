package terminal

// The styles.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Style gives visible text a style, if there are colours.
func Style(color bool, style, text string) string {
	if !color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// SignStyles are the colours of added and removed lines, by their sign.
var SignStyles = map[byte]string{'+': Green, '-': Red}
