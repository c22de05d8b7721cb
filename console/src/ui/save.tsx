// Download of a file that the console creates.
import { ActButton } from './form.tsx'

type Props = { children: string; label?: string; file: string; read: () => Promise<string> }

/** Button that downloads a text as a file. An error is shown beside the button. */
export function SaveButton({ children, label, file, read }: Props) {
  return (
    <ActButton {...(label !== undefined && { label })} act={async () => saveFile(file, await read())}>
      {children}
    </ActButton>
  )
}

/** Downloads a text as a file. */
export function saveFile(file: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  link.download = file
  link.click()
  // After this delay, the browser has read the file.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
