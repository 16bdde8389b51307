(* Definitions for samples: Gram matrices, centering and the empirical HSIC.

   The rows of a sample lie in arbitrary types, which need not be finite. A kernel
   on such a type is a function whose Gram matrix is a kernel for every finite
   list of points, and [ball_on k b f] says that f belongs to the RKHS of k and
   has squared norm at most b (see Finite.v). So the statements about samples
   are as general as in the paper. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin definitions of samples *)
Definition kernel_on (R : realFieldType) (X : Type) (k : X -> X -> R) : Prop :=
  forall n (x : 'I_n -> X), kernel (fun i j => k (x i) (x j)).

Definition ball_on (R : realFieldType) (X : Type) (k : X -> X -> R) (b : R) (f : X -> R) : Prop :=
  forall n (x : 'I_n -> X), ball (fun i j => k (x i) (x j)) b (fun i => f (x i)).

Definition gram (R : realFieldType) (X : Type) (k : X -> X -> R) n (x : 'I_n -> X) : 'M[R]_n :=
  \matrix_(i, j) k (x i) (x j).

(* H = I - (1/n) 1 1^T *)
Definition centering (R : realFieldType) n : 'M[R]_n := 1%:M - n%:R^-1 *: const_mx 1.

Definition centered (R : realFieldType) n (K : 'M[R]_n) : 'M[R]_n :=
  centering R n *m K *m centering R n.

(* The biased statistic n^-2 tr(HKH HLH). *)
Definition hsic_n (R : realFieldType) n (K L : 'M[R]_n) : R :=
  (n%:R ^+ 2)^-1 * \tr (centered K *m centered L).
(* end definitions of samples *)

Section Samples.
Variables (R : realFieldType) (n : nat).
Implicit Types (K L : 'M[R]_n) (u v : 'I_n -> R).

Definition recenter u (i : 'I_n) : R := u i - n%:R^-1 * \sum_j u j.

Lemma formM K u v : form (fun i j => K i j) u v = ((\row_i u i) *m K *m (\row_i v i)^T) 0 0.
Proof.
rewrite /form mxE exchange_big; apply: eq_bigr => j _ /=.
by rewrite !mxE mulr_suml; apply: eq_bigr => i _; rewrite !mxE mulrAC.
Qed.

Lemma centering_sym : (centering R n)^T = centering R n.
Proof. by rewrite /centering linearB linearZ /= trmx1 trmx_const. Qed.

Lemma row_centering u : (\row_i u i) *m centering R n = \row_i recenter u i.
Proof.
rewrite /centering mulmxBr mulmx1 -scalemxAr; apply/rowP => i; rewrite !mxE /recenter.
by congr (_ - _ * _); apply: eq_bigr => j _; rewrite !mxE mulr1.
Qed.

Lemma form_centered K u v :
  form (fun i j => centered K i j) u v = form (fun i j => K i j) (recenter u) (recenter v).
Proof.
by rewrite !formM -!row_centering trmx_mul centering_sym /centered !mulmxA.
Qed.

Lemma centered_kernel K : kernel (fun i j => K i j) -> kernel (fun i j => centered K i j).
Proof.
move=> [sK pK]; split=> [i j|u]; last by rewrite /quad form_centered; exact: pK.
have tK : K^T = K by apply/matrixP => a b; rewrite mxE.
have tc : (centered K)^T = centered K by rewrite /centered !trmx_mul centering_sym tK mulmxA.
by rewrite -[in LHS]tc mxE.
Qed.

Lemma gram_kernel X (k : X -> X -> R) (x : 'I_n -> X) :
  kernel_on k -> kernel (fun i j => gram k x i j).
Proof.
move=> /(_ n x)[sk pk]; split=> [i j|u]; first by rewrite !mxE.
by have := pk u; rewrite /quad (eq_kernel_form (k' := fun i j => gram k x i j)) // => i j; rewrite mxE.
Qed.

Lemma trace_sum (A B : 'M[R]_n) : \tr (A *m B) = \sum_i \sum_j A i j * B j i.
Proof. by rewrite /mxtrace; apply: eq_bigr => i _; rewrite mxE. Qed.

(* The trace of a product, summed over the directions of the first factor. *)
Lemma trace_squares (A B : 'M[R]_n) r (d : 'I_r -> R) (v : 'I_r -> 'I_n -> R) :
  (forall i j, B i j = B j i) -> (forall i j, A i j = squares d v i j) ->
  \tr (A *m B) = \sum_a d a * quad (fun i j => B i j) (v a).
Proof.
move=> sB AE; rewrite trace_sum.
transitivity (\sum_i \sum_j \sum_a d a * (v a i * v a j * B i j)).
  apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite AE sB /squares mulr_suml.
  by apply: eq_bigr => a _; rewrite -mulrA.
under eq_bigr do rewrite exchange_big /=.
rewrite exchange_big; apply: eq_bigr => a _ /=.
by rewrite /quad /form mulr_sumr; apply: eq_bigr => i _; rewrite mulr_sumr.
Qed.

Lemma sum_recenter u (f : 'I_n -> R) : \sum_i recenter u i * f i = \sum_i u i * recenter f i.
Proof.
rewrite /recenter; under eq_bigr do rewrite mulrBl; under [RHS]eq_bigr do rewrite mulrBr.
by rewrite !sumrB -mulr_sumr -mulr_suml; congr (_ - _); rewrite mulrCA mulrA.
Qed.

Lemma hsic_n_ge0 K L : kernel (fun i j => K i j) -> kernel (fun i j => L i j) -> 0 <= hsic_n K L.
Proof.
move=> /centered_kernel /kernel_squares[r [d [v [d0 KE]]]] /centered_kernel[sL pL].
rewrite /hsic_n (trace_squares sL KE) mulr_ge0 ?invr_ge0 ?sqr_ge0 //.
by apply: sumr_ge0 => a _; apply: mulr_ge0.
Qed.

End Samples.

(* On a finite type the two notions of kernel and of ball agree. *)
Section FiniteType.
Variables (R : realFieldType) (T : finType) (k : T -> T -> R).

Lemma form_pull n (x : 'I_n -> T) (u v : 'I_n -> R) :
  form (fun i j => k (x i) (x j)) u v
  = form k (fun t => \sum_i u i * point R (x i) t) (fun t => \sum_i v i * point R (x i) t).
Proof.
rewrite form_suml; apply: eq_bigr => i _; rewrite form_sumr mulr_sumr; apply: eq_bigr => j _.
by rewrite form_points mulrA.
Qed.

Lemma finite_kernel_on : kernel k -> kernel_on k.
Proof.
by move=> [sk pk] n x; split=> [i j|u]; [exact: sk | rewrite /quad form_pull; exact: pk].
Qed.

Lemma finite_ball_on b f : ball k b f -> ball_on k b f.
Proof.
move=> fb n x u; rewrite /quad form_pull; apply: le_trans (fb _).
suff -> : \sum_t (\sum_i u i * point R (x i) t) * f t = \sum_i u i * f (x i) by [].
under eq_bigr do rewrite mulr_suml.
rewrite exchange_big; apply: eq_bigr => i _ /=; rewrite -(sum_point (x i) f) mulr_sumr.
by apply: eq_bigr => t _; rewrite mulrA.
Qed.

End FiniteType.
