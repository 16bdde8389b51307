(* Theorem 4.5 and Corollary 4.6: HSIC and the conditional MMD integral, both sides; GDP of RKHS heads.

   Formalized: both sides of the theorem, both parts of the corollary, and an
   example that the tail must contain the null space of T_S.
   Weaker than the paper: Z and S take finitely many values.
   Stronger: only the m eigenfunctions that are used are assumed, in any order;
   no complete eigensystem is needed. [low] is any lower bound of their
   eigenvalues, for example lambda_m. (Spectral_theorem.v proves that a complete
   system exists.) The bound kappa is needed only at values s that occur.
   Hypotheses: p is a joint law, k and l are kernels (k_Z and k_S), psi are
   orthonormal in L2(P_S) and eigenfunctions of T_S. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Spectral_theorem Theorem_4_3.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Spectral.
Variables (R : realFieldType) (Z S : finType).
Variables (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R).

(* begin definitions for Theorem 4.5 *)
(* The inner product of L2(P_S). *)
Definition inner (u v : S -> R) : R := \sum_s marginal_s p s * u s * v s.

(* (T_S u)(s) = int k_S(s, t) u(t) dP_S(t) *)
Definition integral_operator (u : S -> R) (s : S) : R := \sum_t marginal_s p t * l s t * u t.

Definition eigenfunctions m (lam : 'I_m -> R) (psi : 'I_m -> S -> R) : Prop :=
  (forall i j, inner (psi i) (psi j) = (i == j)%:R)
  /\ forall i s, marginal_s p s != 0 -> integral_operator (psi i) s = lam i * psi i s.

(* Delta_i = E[Delta(S) psi_i(S)], by its weights. *)
Definition coefficient m (psi : 'I_m -> S -> R) (i : 'I_m) (z : Z) : R :=
  \sum_s marginal_s p s * psi i s * deviation p s z.

(* ||(I - P_m) Delta||^2, with everything that the m eigenfunctions leave. *)
Definition tail m (psi : 'I_m -> S -> R) : R :=
  \sum_s marginal_s p s
    * quad k (fun z => deviation p s z - \sum_i psi i s * coefficient psi i z).
(* end definitions for Theorem 4.5 *)

Hypotheses (p_law : joint_law p) (kk : kernel k) (kl : kernel l).

Let weight (s t : S) : R := marginal_s p s * (s == t)%:R.

Lemma form_weight u v : form weight u v = inner u v.
Proof.
apply: eq_bigr => s _; rewrite (bigD1 s) //= big1 ?addr0 /weight ?eqxx ?mulr1; first by ring.
by move=> t; rewrite eq_sym => /negbTE ->; rewrite !mulr0.
Qed.

Lemma weight_kernel : kernel weight.
Proof.
split=> [s t|u]; first by rewrite /weight eq_sym; case: eqP => [->|_]; rewrite ?mulr0.
rewrite /quad form_weight; apply: sumr_ge0 => s _.
by rewrite -mulrA -expr2 mulr_ge0 ?sqr_ge0 ?marginal_s_ge0.
Qed.

Section Eigen.
Variables (m : nat) (lam : 'I_m -> R) (psi : 'I_m -> S -> R).
Hypothesis eigen : eigenfunctions lam psi.

Lemma eigen_form u i :
  form l (fun s => marginal_s p s * u s) (fun s => marginal_s p s * psi i s)
  = lam i * inner u (psi i).
Proof.
rewrite /inner [RHS]mulr_sumr; apply: eq_bigr => s _.
have -> : \sum_t marginal_s p s * u s * (marginal_s p t * psi i t) * l s t
          = marginal_s p s * u s * integral_operator (psi i) s.
  by rewrite /integral_operator [RHS]mulr_sumr; apply: eq_bigr => t _; ring.
have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite !mul0r mulr0.
by rewrite (proj2 eigen) //; ring.
Qed.

Lemma operator_bessel u :
  \sum_i lam i * inner u (psi i) ^+ 2 <= quad l (fun s => marginal_s p s * u s).
Proof.
rewrite -subr_ge0.
rewrite -(@quad_residual _ _ _ _ _ (fun i s => marginal_s p s * psi i s) lam).
- exact: (proj2 kl).
- exact: (proj1 kl).
- exact: eigen_form.
- by move=> i j; rewrite eigen_form (proj1 eigen).
Qed.

Definition projection (u : S -> R) (s : S) : R := \sum_i inner u (psi i) * psi i s.

Lemma pythagoras u :
  inner u u = \sum_i inner u (psi i) ^+ 2
              + inner (fun s => u s - projection u s) (fun s => u s - projection u s).
Proof.
have := @quad_residual _ _ weight m u psi (fun=> 1) (fun i => inner u (psi i)) (proj1 weight_kernel).
rewrite /quad !form_weight => -> => [|i|i j].
- by under [X in _ - X]eq_bigr do rewrite mul1r; ring.
- by rewrite form_weight mul1r.
- by rewrite form_weight (proj1 eigen) mul1r.
Qed.

Lemma projection_norm u : inner (projection u) (projection u) = \sum_i inner u (psi i) ^+ 2.
Proof.
rewrite -form_weight -/(quad _ _) (@quad_combination _ _ _ _ _ (fun=> 1)).
  by under eq_bigr do rewrite mul1r.
by move=> i j; rewrite form_weight (proj1 eigen) mul1r.
Qed.

Lemma head_bound low u : 0 < low -> (forall i, low <= lam i) ->
  \sum_i inner u (psi i) ^+ 2 <= quad l (fun s => marginal_s p s * u s) / low.
Proof.
move=> low0 low_lam; rewrite ler_pdivl_mulr // mulrC.
apply: le_trans (operator_bessel u); rewrite mulr_sumr; apply: ler_sum => i _.
by apply: ler_wpmul2r; rewrite ?sqr_ge0.
Qed.

End Eigen.

Lemma expected_squares r (d : 'I_r -> R) (v : 'I_r -> Z -> R) :
  (forall x y, k x y = squares d v x y) ->
  expected_mmd2 k p = \sum_j d j * inner (head_gap p (v j)) (head_gap p (v j)).
Proof.
move=> ek; have e s : mmd2 k (conditional p s) (marginal_z p)
                      = \sum_j d j * (head_gap p (v j) s * head_gap p (v j) s).
  rewrite /mmd2 /quad (eq_kernel_form _ _ ek) form_squares.
  by apply: eq_bigr => j _; rewrite !head_gapC.
rewrite /expected_mmd2; under eq_bigr => s _ do rewrite e mulr_sumr.
rewrite exchange_big; apply: eq_bigr => j _ /=.
by rewrite /inner [RHS]mulr_sumr; apply: eq_bigr => s _; ring.
Qed.

Lemma coefficient_mean m (psi : 'I_m -> S -> R) i f :
  \sum_z coefficient psi i z * f z = inner (head_gap p f) (psi i).
Proof.
rewrite /coefficient; under eq_bigr do rewrite mulr_suml.
rewrite exchange_big; apply: eq_bigr => s _ /=; rewrite /head_gap mulrAC [RHS]mulr_sumr.
by apply: eq_bigr => z _; ring.
Qed.

Lemma tail_squares r (d : 'I_r -> R) (v : 'I_r -> Z -> R) m (psi : 'I_m -> S -> R) :
  (forall x y, k x y = squares d v x y) ->
  tail psi = \sum_j d j * let rest s := head_gap p (v j) s - projection psi (head_gap p (v j)) s in
                          inner rest rest.
Proof.
move=> ek; have e s : quad k (fun z => deviation p s z - \sum_i psi i s * coefficient psi i z)
   = \sum_j d j * (head_gap p (v j) s - projection psi (head_gap p (v j)) s) ^+ 2.
  rewrite /quad (eq_kernel_form _ _ ek) form_squares; apply: eq_bigr => j _.
  rewrite -expr2; congr (_ * _ ^+ 2).
  under eq_bigr do rewrite mulrBl; rewrite sumrB head_gapC; congr (_ - _).
  under eq_bigr do rewrite mulr_suml.
  rewrite exchange_big /projection; apply: eq_bigr => i _ /=.
  rewrite -coefficient_mean mulr_suml; apply: eq_bigr => z _; ring.
rewrite /tail; under eq_bigr => s _ do rewrite e mulr_sumr.
rewrite exchange_big; apply: eq_bigr => j _ /=.
by rewrite /inner [RHS]mulr_sumr; apply: eq_bigr => s _; ring.
Qed.

End Spectral.

(* begin Theorem 4.5, upper side *)
Theorem upper_side (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R)
    m (lam : 'I_m -> R) (psi : 'I_m -> S -> R) (low rho2 : R) :
  joint_law p -> kernel k -> kernel l ->
  eigenfunctions p l lam psi -> 0 < low -> (forall i, low <= lam i) ->
  tail p k psi <= rho2 ->
  expected_mmd2 k p <= low^-1 * hsic k l p + rho2.
(* end Theorem 4.5, upper side *)
Proof.
move=> p_law kk kl eigen low0 low_lam rho; have [r [d [v [d0 ek]]]] := kernel_squares kk.
apply: le_trans (ler_add (lexx _) rho).
rewrite (expected_squares p ek) (hsic_squares p_law _ ek) (tail_squares p psi ek).
rewrite mulr_sumr -big_split; apply: ler_sum => j _ /=.
rewrite mulrCA -mulrDr; apply: ler_wpmul2l => //.
rewrite (pythagoras p_law eigen); apply: ler_add => //.
by rewrite mulrC; apply: (head_bound kl eigen).
Qed.

(* begin Theorem 4.5, eigensystem *)
(* Positive eigenvalues in decreasing order, with eigenfunctions that sum up to k_S: Mercer. *)
Theorem eigensystem (R : rcfType) (Z S : finType) (p : Z -> S -> R) (l : S -> S -> R) :
  joint_law p -> kernel l ->
  exists r (lam : 'I_r -> R) (psi : 'I_r -> S -> R),
    [/\ eigenfunctions p l lam psi, forall i, 0 < lam i,
        forall i j : 'I_r, (i <= j)%N -> lam j <= lam i
      & forall s t, marginal_s p s != 0 -> marginal_s p t != 0 ->
          l s t = \sum_i lam i * (psi i s * psi i t)].
(* end Theorem 4.5, eigensystem *)
Proof.
move=> p_law [sl pl]; pose w s := Num.sqrt (marginal_s p s).
have ww s : w s * w s = marginal_s p s by rewrite -expr2 sqr_sqrtr ?marginal_s_ge0.
have w0 s : marginal_s p s != 0 -> w s != 0.
  by apply: contraNneq => s0; rewrite -ww s0 mul0r.
have [|r [lam [e [lam0 down on aE]]]] := @spectral_kernel R S (fun s t => w s * w t * l s t).
  split=> [s t|u]; first by rewrite sl; ring.
  have := pl (fun s => w s * u s); congr (0 <= _).
  by apply: eq_bigr => s _; apply: eq_bigr => t _; ring.
have apply_e i s : \sum_t w s * w t * l s t * e i t = lam i * e i s.
  under eq_bigr => t _ do rewrite aE mulr_suml.
  rewrite exchange_big (bigD1 i) //= [X in _ + X]big1 ?addr0 => [|j ji].
    transitivity (\sum_t lam i * e i s * (e i t * e i t)); first by apply: eq_bigr => t _; ring.
    by rewrite -mulr_sumr on eqxx mulr1.
  transitivity (\sum_t lam j * e j s * (e j t * e i t)); first by apply: eq_bigr => t _; ring.
  by rewrite -mulr_sumr on (negbTE ji) mulr0.
have e0 i s : marginal_s p s = 0 -> e i s = 0.
  move=> s0; have /eqP := apply_e i s.
  rewrite big1 => [|t _]; first by rewrite eq_sym mulf_eq0 gt_eqF //= => /eqP.
  by rewrite /w s0 sqrtr0 !mul0r.
exists r, lam, (fun i s => e i s / w s); split=> //.
  split=> [i j|i s s0].
    rewrite -on; apply: eq_bigr => s _.
    have [s0|s0] := eqVneq (marginal_s p s) 0; first by rewrite !(e0 _ _ s0) !mul0r mulr0.
    by rewrite -ww; field; exact: w0.
  apply: (mulfI (w0 s s0)); rewrite mulr_sumr.
  transitivity (\sum_t w s * w t * l s t * e i t).
    apply: eq_bigr => t _; have [t0|t0] := eqVneq (marginal_s p t) 0.
      by rewrite (e0 _ _ t0) mul0r !mulr0.
    by rewrite -ww; field; exact: w0.
  by rewrite apply_e; field; exact: w0.
move=> s t s0 t0; apply: (mulfI (w0 s s0)); apply: (mulfI (w0 t t0)).
have -> : w t * (w s * l s t) = w s * w t * l s t by ring.
rewrite aE !mulr_sumr; apply: eq_bigr => i _; field; by rewrite !w0.
Qed.

(* begin Theorem 4.5, lower side *)
Theorem lower_side (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) (kappa : R) :
  joint_law p -> kernel k -> kernel l -> 0 < kappa ->
  (forall s, marginal_s p s != 0 -> l s s <= kappa) ->
  kappa^-1 * hsic k l p <= expected_mmd2 k p.
(* end Theorem 4.5, lower side *)
Proof.
move=> p_law kk kl kappa0 lk; have [r [d [v [d0 ek]]]] := kernel_squares kk.
rewrite ler_pdivr_mull // (expected_squares p ek) (hsic_squares p_law _ ek) mulr_sumr.
apply: ler_sum => j _; rewrite [X in _ <= X]mulrCA; apply: ler_wpmul2l => //.
set u := head_gap p (v j); have p0 := marginal_s_ge0 p_law.
pose a s := marginal_s p s * (u s ^+ 2 * l s s).
have two : quad l (fun s => marginal_s p s * u s) *+ 2 <= (\sum_s a s) *+ 2.
  have -> : (\sum_s a s) *+ 2 = \sum_s \sum_t (marginal_s p t * a s + marginal_s p s * a t).
    under [RHS]eq_bigr do rewrite big_split /=.
    rewrite big_split /=.
    under [X in _ = X + _]eq_bigr do rewrite -mulr_suml (marginal_s_sum p_law) mul1r.
    under [X in _ = _ + X]eq_bigr do rewrite -mulr_sumr.
    by rewrite -mulr_suml (marginal_s_sum p_law) mul1r mulr2n.
  rewrite /quad /form -sumrMnl; apply: ler_sum => s _; rewrite -sumrMnl; apply: ler_sum => t _.
  rewrite -subr_ge0.
  have -> : marginal_s p t * a s + marginal_s p s * a t
            - marginal_s p s * u s * (marginal_s p t * u t) * l s t *+ 2
          = marginal_s p s * marginal_s p t
            * quad l (fun x => u s * point R s x + (- u t) * point R t x).
    rewrite quadD; last exact: (proj1 kl).
    by rewrite /quad !form_points /a -mulr_natl; ring.
  by rewrite !mulr_ge0 //; exact: (proj2 kl).
rewrite ler_pmuln2r // in two; apply: le_trans two _.
rewrite /inner mulr_sumr; apply: ler_sum => s _; rewrite /a.
have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite !mul0r mulr0.
have -> : kappa * (marginal_s p s * u s * u s) = marginal_s p s * (u s ^+ 2 * kappa) by ring.
by apply: ler_wpmul2l => //; apply: ler_wpmul2l; [exact: sqr_ge0 | exact: lk].
Qed.

(* begin Theorem 4.5, the null space *)
(* For a constant k_S and Z = S a fair coin: one eigenfunction has eigenvalue one and
   coefficient zero, HSIC is zero, and the integral is 1/2. A tail that sums only over
   eigenfunctions with positive eigenvalue would claim 1/2 <= 0. *)
Theorem null_space_is_needed (R : realFieldType) :
  let p := @coin R in
  let l := fun _ _ : bool => 1 : R in
  let psi := fun (_ : 'I_1) (_ : bool) => 1 : R in
  [/\ kernel l, eigenfunctions p l (fun=> 1) psi, forall i z, coefficient p psi i z = 0,
      hsic equal l p = 0 & expected_mmd2 equal p = 2%:R^-1].
(* end Theorem 4.5, the null space *)
Proof.
split.
- split=> // u; rewrite /quad /form.
  under eq_bigr do under eq_bigr do rewrite mulr1.
  by under eq_bigr do rewrite -mulr_sumr; rewrite -mulr_suml -expr2 sqr_ge0.
- split=> [i j|i s _].
    by rewrite /inner big_bool !coin_marginal !ord1 eqxx /=; field.
  by rewrite /integral_operator big_bool !coin_marginal /=; field.
- move=> i z; rewrite /coefficient; under eq_bigr do rewrite mulr1.
  by rewrite mean_deviation //; exact: coin_law.
- rewrite (hsic_decomposition (coin_law R)) !big_bool !coin_marginal !form_equal !big_bool.
  by rewrite !coin_deviation /=; field.
- rewrite /expected_mmd2 big_bool !coin_marginal /mmd2 !quad_equal !big_bool.
  by rewrite -!/(deviation _ _ _) !coin_deviation /=; field.
Qed.

(* begin Corollary 4.6, projected gap *)
Theorem projected_gap (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R)
    m (lam : 'I_m -> R) (psi : 'I_m -> S -> R) (low b : R) (f : Z -> R) :
  joint_law p -> kernel k -> kernel l ->
  eigenfunctions p l lam psi -> 0 < low -> (forall i, low <= lam i) -> ball k b f ->
  \sum_s marginal_s p s * projection p psi (head_gap p f) s ^+ 2 <= b / low * hsic k l p.
(* end Corollary 4.6, projected gap *)
Proof.
move=> p_law kk kl eigen low0 low_lam fb; set projected := projection p psi (head_gap p f).
have -> : \sum_s marginal_s p s * projected s ^+ 2 = inner p projected projected.
  by apply: eq_bigr => s _; ring.
rewrite (projection_norm eigen); apply: le_trans (head_bound kl eigen _ low0 low_lam) _.
rewrite mulrAC; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
exact: (head_control p_law kk kl fb).
Qed.

(* begin Corollary 4.6, parity gap *)
Definition gdp (R : realFieldType) (Z S : finType) (p : Z -> S -> R) (f : Z -> R) : R :=
  \sum_s marginal_s p s * `|head_gap p f s|.

Theorem parity_gap (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R)
    m (lam : 'I_m -> R) (psi : 'I_m -> S -> R) (low b r2 : R) (f : Z -> R) :
  joint_law p -> kernel k -> kernel l ->
  eigenfunctions p l lam psi -> 0 < low -> (forall i, low <= lam i) -> ball k b f ->
  \sum_s marginal_s p s * (head_gap p f s - projection p psi (head_gap p f) s) ^+ 2 <= r2 ->
  gdp p f ^+ 2 <= b / low * hsic k l p + r2.
(* end Corollary 4.6, parity gap *)
Proof.
move=> p_law kk kl eigen low0 low_lam fb rest.
have sq u : \sum_s marginal_s p s * u s ^+ 2 = inner p u u by apply: eq_bigr => s _; ring.
apply: (@le_trans _ _ (inner p (head_gap p f) (head_gap p f))).
  have := form_cauchy_schwarz (fun=> 1) (fun s => `|head_gap p f s|) (weight_kernel p_law).
  rewrite /quad !form_weight.
  have -> : inner p (fun=> 1) (fun s => `|head_gap p f s|) = gdp p f.
    by apply: eq_bigr => s _; rewrite mulr1.
  have -> : inner p (fun=> 1) (fun=> 1) = 1.
    by rewrite -[RHS](marginal_s_sum p_law); apply: eq_bigr => s _; rewrite !mulr1.
  rewrite mul1r -!sq; under [X in _ <= X -> _]eq_bigr do rewrite real_normK ?num_real //.
  by [].
rewrite (pythagoras p_law eigen) -(projection_norm eigen) -!sq; apply: ler_add => //.
exact: (projected_gap p_law kk kl eigen low0 low_lam fb).
Qed.
