package hostmod

const maxConfigName = 10 << 10 // bytes of a name; a longer one is an [abi.Fault]

// configGet is config.get. It returns settings that the module's own manifest declares, with
// the values of the host's user, so it needs no grant. Parameters: name (pointer, length),
// result pointer.
func configGet(c reply) error {
	name, err := c.mem.String("name", c.u32(0), c.u32(1), maxConfigName)
	if err != nil {
		return err
	}
	r := c.record()
	if c.world != nil && c.world.Config != nil {
		if value, ok := c.world.Config(name); ok {
			r.u8(0, 1)
			r.bytes(c.guest, c.payload, []byte(value))
		}
	}
	return c.put(r)
}

var configResult = layout{size: 12, align: 4, payload: 4} // of an option<string>
