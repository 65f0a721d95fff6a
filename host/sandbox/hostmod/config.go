package hostmod

const maxConfigName = 10 << 10 // bytes of a name; a longer one is an [abi.Fault]

// configGet is config.get. It returns settings that the module's own manifest declares, with
// the values of the host's user, so it needs no grant. Parameters: name (pointer, length),
// result pointer.
func configGet(g *guest) error {
	name, err := g.mem.String("name", g.u32(0), g.u32(1), maxConfigName)
	if err != nil {
		return err
	}
	r := configResult.record()
	if g.world != nil && g.world.Config != nil {
		if value, ok := g.world.Config(name); ok {
			r.u8(0, 1)
			if err := r.bytes(g, configResult.payload, []byte(value)); err != nil {
				return err
			}
		}
	}
	return configResult.put(g, g.u32(2), r)
}

var configResult = layout{size: 12, align: 4, payload: 4} // of an option<string>
