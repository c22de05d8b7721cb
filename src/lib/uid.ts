import { createHash, randomBytes } from 'node:crypto'

/** A uid is a path in the hierarchy: 40 hex digits for a root, then `/` and 16 hex digits for each level below. */
const pattern = /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/

/** Far more than the deepest node needs; a longer text is not worth a look. */
const maxLength = 1024

/** The parent of every root. */
export const top = '/'

export function isUid(text: string): boolean {
  return text.length <= maxLength && pattern.test(text)
}

/** Below `parent`, or a root when `parent` is `/`. */
export function newUid(parent: string): string {
  return parent === top ? randomBytes(20).toString('hex') : `${parent}/${randomBytes(8).toString('hex')}`
}

/** The node above; `/` for a root. */
export function parentOf(uid: string): string {
  const slash = uid.lastIndexOf('/')
  return slash < 0 ? top : uid.slice(0, slash)
}

/** Uid of the organization that a node belongs to, or of the node itself if it is a root. */
export function rootOf(uid: string): string {
  const slash = uid.indexOf('/')
  return slash < 0 ? uid : uid.slice(0, slash)
}

/** The node itself, its parent, and so on up to its root; `/` is not among them. */
export function lineage(uid: string): string[] {
  const nodes = [uid]
  for (let slash = uid.lastIndexOf('/'); slash > 0; slash = uid.lastIndexOf('/', slash - 1)) {
    nodes.push(uid.slice(0, slash))
  }
  return nodes
}

/** True if `uid` is `ancestor` or is below it. Everything is below `/`. */
export function isAtOrBelow(uid: string, ancestor: string): boolean {
  return ancestor === top || uid === ancestor || (uid.startsWith(ancestor) && uid[ancestor.length] === '/')
}

/** Subject of the operator's tokens, which need the data folder or the master key. A root-level uid that no identity can get. */
export const operatorUid: string = createHash('sha256').update('pinfold operator').digest('hex').slice(0, 40)
