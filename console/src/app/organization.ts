// Organization of the current page. On pages without one, it is the organization of the last page that had one.
import { computed, effect, signal } from '@preact/signals'
import { Refusal } from '../data/api.ts'
import { findGroup } from '../data/names.ts'
import { type CapabilityName, hasCapabilityWithin } from '../data/rights.ts'
import { readTopGroups } from '../data/top-groups.ts'
import { route } from './route.ts'
import { rights } from './session.ts'
import { keep, kept } from './settings.ts'

type Top = { name: string; uid: string | undefined }

const last = signal(kept('organization'))

/** Name of the organization in addresses. Empty if the user has none. */
export const organization = computed(() => {
  const { head, names } = route.value
  return ['g', 'r'].includes(head) && names.length > 0 ? names[0]! : last.value
})

const current = signal<Top>({ name: '', uid: undefined })

/** Checks whether the user has a permission somewhere in the current organization. */
export function canHere(name: CapabilityName): boolean {
  const { uid } = current.value
  return rights.value !== undefined && uid !== undefined && hasCapabilityWithin(rights.value, name, uid)
}

/** Uid of the current organization. Empty if it is not known. */
export const organizationUid = (): string => current.value.uid ?? ''

export function startOrganization(): void {
  effect(() => {
    const name = organization.value
    last.value = name
    keep('organization', name)
    if (name === '' || name === current.peek().name) return
    current.value = { name, uid: undefined }
    void readCurrent(name)
  })
}

const retryMs = 5000

/** Reads the uid of the organization. Repeats the request while the server fails. */
async function readCurrent(name: string): Promise<void> {
  if (current.peek().name !== name) return
  try {
    const { item } = await findGroup([name])
    if (current.peek().name === name) current.value = { name, uid: item.uid }
  } catch (error) {
    // If the user cannot see the organization, the page says so.
    const isMissing = error instanceof Refusal && [401, 403, 404].includes(error.status)
    if (!isMissing) setTimeout(() => void readCurrent(name), retryMs)
  }
}

/** First segment of the address of the user's first organization. Empty if the user has none. */
export async function firstOrganization(signal: AbortSignal): Promise<string> {
  if (last.value !== '' && (await isVisible(last.value))) return last.value
  const [first] = await readTopGroups(signal)
  return first?.names[0] ?? ''
}

const isVisible = (name: string): Promise<boolean> =>
  findGroup([name]).then(
    () => true,
    () => false,
  )
