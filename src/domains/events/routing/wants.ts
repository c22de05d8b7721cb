import type { App } from '#app.ts'
import { matchesType } from './type-patterns.ts'

/** What of a subscription decides which events it gets of those that it may see. `vendor` is empty for our names. */
export type Wishes = { uid: string; types: readonly string[]; vendor: string }

/** What happens to a subscription is news for the others. */
export function wants(
  app: Pick<App, 'vendor'>,
  { uid, types, vendor }: Wishes,
  { type, subject }: { type: string; subject: string },
): boolean {
  return subject !== uid && matchesType(types, type, vendor || app.vendor?.token)
}
