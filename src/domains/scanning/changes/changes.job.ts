import type { Job } from '#job.ts'
import { noteChanges } from './changes.service.ts'
import { tellChanges, tellLater } from './emit-changes.service.ts'

/** Background job that emits events for vulnerabilities found and resolved in tagged images. */
export const tellVulnerabilities: Job = {
  name: 'vulnerabilities.tell',
  everyMs: 2000,
  runsOn: 'one node',
  async run(app, lease) {
    const packages = await noteChanges(app, lease)
    return { packages, events: (await tellChanges(app, lease)) + (await tellLater(app, lease)) }
  },
}
