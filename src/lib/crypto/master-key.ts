import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const keyBytes = 32

/** The 32 bytes that `text` spells in hex or base64. */
export function parseMasterKey(text: string): Buffer {
  const trimmed = text.trim()
  const key = /^[0-9a-fA-F]{64}$/.test(trimmed) ? Buffer.from(trimmed, 'hex') : Buffer.from(trimmed, 'base64')
  if (key.length !== keyBytes) throw new Error(`the master key must be ${keyBytes} bytes, as base64 or hex`)
  return key
}

/** Reads `master.key` of the data folder, or makes it: for its owner only, on disk before anything is encrypted with it. */
export function openMasterKey(folder: string): Buffer {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, 'master.key')
  const read = () => parseMasterKey(readFileSync(file, 'utf8'))
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const fd = openSync(draft, 'wx', 0o600)
  writeSync(fd, `${randomBytes(keyBytes).toString('base64')}\n`)
  fsyncSync(fd)
  closeSync(fd)
  try {
    linkSync(draft, file) // fails when another process was first; then its key is the one
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
  const dir = openSync(folder, 'r')
  fsyncSync(dir)
  closeSync(dir)
  return read()
}
