// Policies of an organization, a folder or a repository.
import type { Screens } from '../app/area.ts'
import {
  RepoAdmissionScreen,
  RepoCooldownScreen,
  RepoRetentionScreen,
  RepoRisksScreen,
} from '../screens/rules/repo-rules.tsx'
import { AdmissionScreen, CooldownScreen, RetentionScreen, RisksScreen } from '../screens/rules/rules.tsx'

export const screens: Screens = {
  admission: ({ names, query }) => <AdmissionScreen names={names} query={query} />,
  cooldown: ({ names, query }) => <CooldownScreen names={names} query={query} />,
  retention: ({ names, query }) => <RetentionScreen names={names} query={query} />,
  risks: ({ names, query }) => <RisksScreen names={names} query={query} />,
  repoAdmission: ({ names, query }) => <RepoAdmissionScreen names={names} query={query} />,
  repoCooldown: ({ names, query }) => <RepoCooldownScreen names={names} query={query} />,
  repoRetention: ({ names, query }) => <RepoRetentionScreen names={names} query={query} />,
  repoRisks: ({ names, query }) => <RepoRisksScreen names={names} query={query} />,
}
