// Configuration of the CI job, ready to be pasted.
import type { Plan } from './conditions.ts'

export function workflowOf(platform: Plan['platform'], uid: string, api: string): string {
  if (platform === 'github') return gitHub(uid, api)
  return platform === 'gitlab' ? gitLab(uid, api) : `pinfold login --api ${api} --identity ${uid}`
}

const gitHub = (uid: string, api: string): string => `permissions:
  contents: read
  id-token: write
env:
  PINFOLD_API: ${api}
  PINFOLD_IDENTITY: ${uid}
steps:
  - run: pinfold login && pinfold docker configure`

const gitLab = (uid: string, api: string): string => `release:
  id_tokens:
    PINFOLD_ID_TOKEN:
      aud: ${new URL(api).host}
  variables:
    PINFOLD_API: ${api}
    PINFOLD_IDENTITY: ${uid}
  script:
    - pinfold login && pinfold docker configure`
