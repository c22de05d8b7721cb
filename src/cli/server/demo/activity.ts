// Pulls and refused requests of the demo, so that the lists of pulls and of refused requests have rows.
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import { clientAs } from './client.ts'
import type { DemoPeople } from './people.ts'

type Scene = {
  /** Name of the organization. */
  company: string
  identities: ReadonlyMap<string, string>
  /** Digests of the first build of each repository, by `folder/name`. */
  oldest: ReadonlyMap<string, string>
}

/** Pulls by identity: the paths of images below the organization. */
const pulls: Readonly<Record<string, readonly string[]>> = {
  'main cluster': ['platform/edge/nginx:stable', 'platform/edge/nginx:candidate', 'platform/bases/static:latest'],
  'risk scoring': ['payments/python:stable', 'payments/jdk:stable', 'payments/php:stable'],
  'notebook builds': ['data/python:latest', 'data/git:latest', 'data/ruby:latest'],
  'warehouse pipelines': ['data/python:stable'],
}

/** Pulls images as workloads and people. Some requests are refused: quarantined content, and pulls without permission. */
export async function addActivity(app: App, server: Server, people: DemoPeople, scene: Scene): Promise<void> {
  const { company, identities, oldest } = scene
  for (const [identity, images] of Object.entries(pulls)) {
    const client = await clientAs(app, server, identities.get(identity)!)
    for (const image of images) {
      const [path, tag] = image.split(':') as [string, string]
      for (let times = 0; times < image.length % 4; times++) await client.pull(`${company}/${path}`, tag)
      await client.pull(`${company}/${path}`, tag)
    }
  }
  await people.alan.client.pull(`${company}/web/node`, 'stable')
  await people.katherine.client.pull(`${company}/payments/jdk`, 'candidate')
  await people.jean.client.pull(`${company}/payments/python`, oldest.get('payments/python')!)
  const stranger = await clientAs(app, server, identities.get('notebook builds')!)
  await stranger.pull(`${company}/payments/jdk`, 'stable')
}
