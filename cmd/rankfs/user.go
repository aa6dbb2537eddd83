package main

import (
	"os/user"
	"strconv"
)

// userName is a user's name, or number.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}
