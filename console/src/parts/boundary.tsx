/** A screen that breaks says so; the frame around it stays. */
import { Component, type ReactNode } from 'react';
import { Failure } from './states';

type Props = { children: ReactNode };

export class Boundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    return error ? <Failure error={error} retry={() => this.setState({ error: null })} /> : this.props.children;
  }
}
