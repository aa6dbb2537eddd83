package sequence

func (c Compression) String() string {
	return [...]string{"none", "record", "block"}[c]
}
