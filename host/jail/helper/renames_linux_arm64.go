package main

const sysRename = -1 // there is none
