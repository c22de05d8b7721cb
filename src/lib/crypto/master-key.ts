import { hkdfSync, randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeFolder, syncFolder } from '../files/folders.ts'

const keyBytes = 32

/** Parses a master key of 32 bytes, written in hex or base64. */
export function parseMasterKey(text: string): Buffer {
  const trimmed = text.trim()
  const key = /^[0-9a-fA-F]{64}$/.test(trimmed) ? Buffer.from(trimmed, 'hex') : Buffer.from(trimmed, 'base64')
  if (key.length !== keyBytes) throw new Error(`the master key must be ${keyBytes} bytes, as base64 or hex`)
  return key
}

/** Fingerprint that identifies the master key without revealing anything about it. */
export function fingerprintOf(masterKey: Uint8Array): string {
  return Buffer.from(hkdfSync('sha256', masterKey, 'pinfold', 'fingerprint', 8)).toString('hex')
}

const fileOf = (folder: string) => join(folder, 'master.key')
/** File with the next key during a rotation. */
const nextOf = (folder: string) => join(folder, 'master.key.new')

/** Master key in the data folder. `undefined` if there is none. */
export const readMasterKey = (folder: string): Buffer | undefined => readKey(fileOf(folder))

/** Next master key in the data folder, left behind by an interrupted rotation. `undefined` if there is none. */
export const readNextMasterKey = (folder: string): Buffer | undefined => readKey(nextOf(folder))

/** Creates the master key of a data folder and returns it. If another process creates one first, returns that key. */
export function makeMasterKey(folder: string): Buffer {
  makeFolder(folder)
  const file = fileOf(folder)
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  writeKey(draft, randomBytes(keyBytes))
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
  syncFolder(folder)
  return readMasterKey(folder)!
}

/**
 * Stores the next key beside the current one. The key is on disk when the function returns, before anything is encrypted with it.
 */
export function stageMasterKey(folder: string): Buffer {
  const file = nextOf(folder)
  // An existing next key can be deleted. If it were in use, opening the database would have promoted it.
  rmSync(file, { force: true })
  const key = randomBytes(keyBytes)
  // Written under another name first, so that the file is complete even if the process is killed.
  const begun = `${file}.part`
  rmSync(begun, { force: true })
  writeKey(begun, key)
  renameSync(begun, file)
  syncFolder(folder)
  return key
}

/**
 * Makes the next key the current one. Keeps the old key in another file, since older backups need it, and returns the name of
 * that file.
 */
export function promoteMasterKey(folder: string): string | undefined {
  const old = readMasterKey(folder)
  const kept = old && `${fileOf(folder)}.old-${fingerprintOf(old)}`
  if (kept !== undefined) {
    rmSync(kept, { force: true })
    linkSync(fileOf(folder), kept)
  }
  renameSync(nextOf(folder), fileOf(folder))
  syncFolder(folder)
  return kept
}

function readKey(file: string): Buffer | undefined {
  try {
    return parseMasterKey(readFileSync(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new Error(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

/** Writes a key to a new file that only its owner can read. */
function writeKey(file: string, key: Buffer): void {
  const fd = openSync(file, 'wx', 0o600)
  writeSync(fd, `${key.toString('base64')}\n`)
  fsyncSync(fd)
  closeSync(fd)
}
