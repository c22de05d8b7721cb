// Text of a checkpoint, in which a log states its size and root (c2sp.org/tlog-checkpoint).
import { hashBytes } from './merkle.ts'
import { fromBase64 } from './notes.ts'

export type Checkpoint = { origin: string; size: number; root: Buffer }

export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`
}

/** Parses a checkpoint. Returns `undefined` if the text is not one. Ignores lines after the third, which are extensions. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  const lines = text.split('\n')
  if (lines.pop() !== '' || lines.length < 3 || lines.includes('')) return undefined
  const [origin, count, encoded] = lines as [string, string, string]
  const [size, root] = [readSize(count), fromBase64(encoded)]
  return size === undefined || root?.length !== hashBytes ? undefined : { origin, size, root }
}

/** Parses a number: decimal, without leading zeros. Returns `undefined` for other text. */
export function readSize(text: string): number | undefined {
  return /^(?:0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
}
