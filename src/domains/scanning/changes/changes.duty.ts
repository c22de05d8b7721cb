import type { Duty } from '#duty.ts'
import { noteChanges } from './changes.service.ts'
import { tellChanges, tellLater } from './emit-changes.service.ts'

/** Tells of what was found and resolved in images that are there. */
export const tellVulnerabilities: Duty = {
  name: 'vulnerabilities.tell',
  everyMs: 2000,
  runsOn: 'one node',
  async run(app, lease) {
    const packages = await noteChanges(app, lease)
    return { packages, events: (await tellChanges(app, lease)) + (await tellLater(app, lease)) }
  },
}
