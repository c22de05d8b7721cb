// Shows the error of a screen that throws. The frame around the screen stays.
import { Component, type ComponentChildren } from 'preact'
import { Problem } from '../ui/states.tsx'

export class ErrorBoundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined }

  override componentDidCatch(error: unknown) {
    this.setState({ error })
  }

  override render() {
    const { error } = this.state
    return error === undefined ? this.props.children : <Problem error={error} />
  }
}
