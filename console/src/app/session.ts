// Who is signed in, as the page says, and what they may do, as the API says.
import { signal } from '@preact/signals'
import { type CapabilityName, holds, type Rights, readRights } from '../data/rights.ts'

const { dataset } = document.body

/** Whoever the page was made for. */
export const me = {
  uid: dataset.uid ?? '',
  name: dataset.name ?? '',
  email: dataset.email ?? '',
  organization: dataset.organization ?? '',
  isOperator: dataset.operator === 'yes',
  /** What images are pulled from. */
  host: dataset.host ?? location.host,
  version: dataset.version ?? '',
}

const rights = signal<Rights | undefined>(undefined)

/** Whether it is known what the person may do; before that nobody is told that they may not. */
export const isKnown = (): boolean => rights.value !== undefined

/** Whether the person may do something at a place, or anywhere. False until it is known. */
export const may = (name: CapabilityName, place?: string): boolean =>
  rights.value !== undefined && holds(rights.value, name, place)

export async function startSession(): Promise<void> {
  try {
    rights.value = await readRights()
  } catch {
    rights.value = { held: [] }
  }
}
