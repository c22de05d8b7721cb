import { createHash, randomBytes } from 'node:crypto'

/** A uid is a path in the hierarchy: 40 hex digits for a root, then `/` and 16 hex digits for each level below. */
const pattern = /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/

/** Maximum length of a text that is checked for a uid. The deepest node has a far shorter uid. */
const maxLength = 1024

/** Parent of every root node. */
export const top = '/'

export function isUid(text: string): boolean {
  return text.length <= maxLength && pattern.test(text)
}

/** Creates the uid of a node below `parent`, or of a root node if `parent` is `/`. */
export function newUid(parent: string): string {
  return parent === top ? randomBytes(20).toString('hex') : `${parent}/${randomBytes(8).toString('hex')}`
}

/** Uid of the parent node. `/` for a root node. */
export function parentOf(uid: string): string {
  const slash = uid.lastIndexOf('/')
  return slash < 0 ? top : uid.slice(0, slash)
}

/** Uid of the organization of a node. For a root node, its own uid. */
export function rootOf(uid: string): string {
  const slash = uid.indexOf('/')
  return slash < 0 ? uid : uid.slice(0, slash)
}

/** Uids of the node, its parent, and so on up to its root node. Does not include `/`. */
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

/** Uid in the operator's tokens, for callers with the data folder or the master key. No identity can get this uid. */
export const operatorUid: string = createHash('sha256').update('pinfold operator').digest('hex').slice(0, 40)
