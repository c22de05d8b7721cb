// Mirrors and webhooks.
import type { Screens } from '../app/area.ts'
import { EventsScreen } from '../screens/events/events.tsx'
import { MirrorsScreen } from '../screens/mirrors/mirrors.tsx'
import { RepoMirrorScreen } from '../screens/mirrors/repo-mirror.tsx'
import { TokensScreen } from '../screens/tokens/tokens.tsx'

export const screens: Screens = {
  mirrors: ({ names }) => <MirrorsScreen names={names} />,
  repoMirror: ({ names }) => <RepoMirrorScreen names={names} />,
  tokens: ({ names }) => <TokensScreen names={names} />,
  webhooks: ({ names }) => <EventsScreen names={names} />,
}
