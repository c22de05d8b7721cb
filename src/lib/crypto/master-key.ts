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

/** The 32 bytes that `text` spells in hex or base64. */
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
/** The next key, while a rotation is under way. */
const nextOf = (folder: string) => join(folder, 'master.key.new')

/** The key in the data folder; `undefined` when there is none. */
export const readMasterKey = (folder: string): Buffer | undefined => readKey(fileOf(folder))

/** The key that a rotation which did not come to its end has left behind. */
export const readNextMasterKey = (folder: string): Buffer | undefined => readKey(nextOf(folder))

/** Creates the key of a data folder, unless another process was first; then returns its key. */
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

/** Stores a new key next to the present one. It is on disk before anything is encrypted with it. */
export function stageMasterKey(folder: string): Buffer {
  const file = nextOf(folder)
  // Nothing is encrypted under a staged key that is already there: opening the database promotes such a key first.
  rmSync(file, { force: true })
  const key = randomBytes(keyBytes)
  // Under its name there is a whole key or none, whenever the process is killed.
  const begun = `${file}.part`
  rmSync(begun, { force: true })
  writeKey(begun, key)
  renameSync(begun, file)
  syncFolder(folder)
  return key
}

/** Replaces the old key by the new one. Keeps the old key, which older backups need, and returns its new file. */
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

/** For its owner only. */
function writeKey(file: string, key: Buffer): void {
  const fd = openSync(file, 'wx', 0o600)
  writeSync(fd, `${key.toString('base64')}\n`)
  fsyncSync(fd)
  closeSync(fd)
}
